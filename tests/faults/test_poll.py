"""prof_channel_poll that fails, and drivers that lie about counts and lengths."""

import time

import profd_harness
from fault_common import FaultAhead, FaultCase, daemon, read_dump, start, stop
from profd_harness import eventually, outcome

CODES = (-1, -2, -4, -5, -77)
EACH = 1.0    # s of every code, ...
APART = 1.5   # ... one after the other


def in_turn(at):
    return [dict(kind="poll_error", at=at + i * APART, for_=EACH, code=code)
            for i, code in enumerate(CODES)]


class PollErrors(FaultCase):
    def test_session_loses_nothing(self):
        begin = time.monotonic()
        with FaultAhead(in_turn, start) as (d, session):
            # The faults are scripted: wait them out by the script's clock.
            over = begin + profd_harness.scaled(2) + APART * len(CODES)
            eventually(lambda: time.monotonic() > over, 60)
            eventually(lambda: d.metric("profd_pump_poll_errors_total", code="-77"),
                       what="all codes have come")
            self.assertGreater(d.metric("profd_pump_poll_errors_total", code="-1"), 0)
            # "Nothing within the timeout" and "interrupted" are no errors.
            for code in ("-2", "-5"):
                self.assertFalse(d.metric("profd_pump_poll_errors_total", code=code))
            before = d.show(session["session_id"])["records"]
            d.until_records(session["session_id"], before + 100)
            done = stop(d, session)
            dump = read_dump(done)
            for device in (0, 1):
                self.assert_complete(dump, device)
            self.assertEqual({o["result"] for o in done["outcomes"]}, {"finished"})
            self.assert_clean_end(d)

    def test_poll_never_works(self):
        with daemon(faults=[dict(kind="poll_error", code=-1)]) as d:
            session = start(d)
            eventually(lambda: d.metric("profd_pump_poll_errors_total", code="-1"),
                       what="the errors are counted")
            view = eventually(lambda: self.silent(d, session), what="the silence is reported")
            self.assertEqual(outcome(view, "hccs", 0)["result"], "running")
            done = stop(d, session)  # reads what the driver has without polling
            self.assertGreater(outcome(done, "hccs", 0)["records"], 0)
            self.assert_complete(read_dump(done), 1)
            self.assert_clean_end(d)

    def silent(self, d, session):
        view = d.show(session["session_id"])
        return view if "delivered nothing" in outcome(view, "hccs", 0)["detail"] else None


class Liars(FaultCase):
    def test_more_pairs_than_asked_for(self):
        with daemon(library="count_too_high") as d:
            session = start(d)
            d.until_records(session["session_id"], 300)
            eventually(lambda: d.metric("profd_pump_poll_errors_total"), what="it is counted")
            done = stop(d, session)
            dump = read_dump(done)
            for device in (0, 1):
                self.assert_complete(dump, device)
            self.assert_clean_end(d)

    def test_more_bytes_than_the_buffer_holds(self):
        with daemon(library="read_lies") as d:
            session = start(d)
            eventually(lambda: outcome(d.show(session["session_id"]), "hccs", 1)["records"] > 150,
                       what="device 1 delivers")
            eventually(lambda: d.metric("profd_channel_read_errors_total", npu="0"),
                       what="the lies are counted")
            self.assertFalse(d.metric("profd_channel_read_errors_total", npu="1"))
            done = stop(d, session)
            dump = read_dump(done)
            self.assert_complete(dump, 1)
            # Only what a read had not touched: nothing of device 0 is lost either.
            self.assert_complete(dump, 0, at_least=1)
            self.assert_clean_end(d)


if __name__ == "__main__":
    profd_harness.main()
