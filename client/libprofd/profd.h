/* libprofd: start, stop and mark profiles from inside a training process.
 *
 * Plain C, usable from C, C++ and by ctypes. Every function may be called from any thread at any
 * time, also before profd_init, after a fork and without a daemon: none ever throws, blocks on the
 * daemon (but those that say so, with a deadline), or ends the process. Errors are negative codes;
 * profd_last_error() has the text for the calling thread.
 *
 * Cost (bench/, p99): profd_mark under 50 ns while no session wants marks, under 1 us while one
 * does.
 *
 * Environment:
 *   PROFD_DISABLE=1          every call is a no-op that returns PROFD_DISABLED
 *   PROFD_ATTACH_SOCKET      socket of the daemon, default /run/profd/attach.sock
 *   PROFILING_OPTIONS        JSON; starts a session when the process attaches
 *   PROFILING_MODE           "false" and "dynamic" keep PROFILING_OPTIONS from starting anything
 *   PROFD_FETCH=0            no copy of that session's dump in its option `output` (default: by `profctl fetch`)
 *   PROFD_LOG=1              logs problems to stderr (default: silent)
 */
#ifndef PROFD_H_
#define PROFD_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROFD_API __attribute__((visibility("default")))

typedef enum profd_result {
  PROFD_OK = 0,
  PROFD_DISABLED = -1,   /* PROFD_DISABLE=1, or nothing was initialised */
  PROFD_NO_DAEMON = -2,  /* not connected (yet); the library continues to try in the background */
  PROFD_TIMEOUT = -3,    /* the daemon did not answer in time; a session that begins after all is stopped at once */
  PROFD_INVALID = -4,    /* bad options or arguments: profd_last_error lists every problem */
  PROFD_REFUSED = -5,    /* not allowed, busy, or not possible: the text has the reason */
  PROFD_NO_SESSION = -6, /* this process has started none */
  PROFD_NO_MEMORY = -7,
} profd_result;

/* What the process reports of itself; all but size may be zero: taken from the environment then
 * (SLURM_*, RANK, LOCAL_RANK, WORLD_SIZE, OMPI_*, RANK_ID, DEVICE_ID, ASCEND_*). Strings are
 * copied. */
typedef struct profd_config {
  size_t size; /* sizeof(profd_config): distinguishes versions */
  const char* job_id;
  int32_t rank;           /* -1 = unknown; 0 counts only beside a world_size */
  int32_t local_rank;     /* as rank */
  int32_t world_size;     /* 0 = unknown */
  const int32_t* devices; /* physical ids (/dev/davinciN) */
  size_t device_count;
  const char* framework; /* "mindspore", "pytorch", ... */
  uint32_t ring_slots;   /* marks that may wait for the daemon; 0 = 16384 */
  uint32_t wait_ms;      /* how long profd_init waits for the daemon; 0 = not at all */
} profd_config;

#define PROFD_CONFIG_INIT \
  { sizeof(profd_config), NULL, -1, -1, 0, NULL, 0, NULL, 0, 0 }

/* Attaches in the background (config may be NULL); again after profd_shutdown. PROFD_OK also while
 * the daemon is absent; PROFD_REFUSED when the library runs already with another configuration.
 * Called implicitly, with NULL, by the first other call. */
PROFD_API int profd_init(const profd_config* config);
/* Waits until attached, at most timeout_ms: PROFD_OK, PROFD_NO_DAEMON, PROFD_TIMEOUT (it is there
 * but does not answer), PROFD_REFUSED (it does not want this process). */
PROFD_API int profd_attach(uint32_t timeout_ms);
/* Detaches; sessions of this process end. Calls after it return PROFD_DISABLED until profd_init. */
PROFD_API void profd_shutdown(void);

/* Starts a session of this process's devices. options_json: PROFILING_OPTIONS, NULL or "" = every
 * collector at its default. Waits for the answer up to timeout_ms (0 = 10 s). */
PROFD_API int profd_start(const char* options_json);
typedef struct profd_start_args {
  size_t size;
  const char* options_json;
  const char* label;
  uint64_t duration_ms; /* 0 = until stopped */
  int64_t start_step;   /* begins with this step; -1 = now */
  uint32_t steps;       /* ends after so many; 0 = not tied to steps */
  int32_t no_dump;
  int32_t best_effort;    /* options the chip lacks are warnings, not errors */
  const char* collectors; /* "hccs=50,host_cpu"; NULL = by options */
  uint32_t timeout_ms;    /* 0 = 10 s */
} profd_start_args;
#define PROFD_START_ARGS_INIT \
  { sizeof(profd_start_args), NULL, NULL, 0, -1, 0, 0, 0, NULL, 0 }
PROFD_API int profd_start_with(const profd_start_args* args);
/* Ends the last session this process started and waits for its dump, up to timeout_ms (0 = 30 s).
 */
PROFD_API int profd_stop(void);
PROFD_API int profd_stop_within(uint32_t timeout_ms);
/* The same of one of several sessions that overlap, by the session_id in the JSON that followed its start (NULL or "" =
 * the last one). */
PROFD_API int profd_stop_session(const char* session_id, uint32_t timeout_ms);

/* Steps. Also what start_step and steps of a session are counted by. */
PROFD_API void profd_step_begin(int64_t step);
PROFD_API void profd_step_end(int64_t step);
/* An instant, and nested ranges per thread. Names up to 88 bytes of UTF-8; longer ones are cut. */
PROFD_API void profd_mark(const char* name);
PROFD_API void profd_range_push(const char* name);
PROFD_API void profd_range_pop(void);
/* As profd_mark, in a domain, which groups marks by who makes them ("communication"). Domains up to 40 bytes; domain
 * and name together up to 87. NULL or "" = none. */
PROFD_API void profd_mark_in(const char* domain, const char* name);
/* A range that may end on another thread and need not nest. Answers its id, for profd_range_end; 0 while no session
 * wants marks (profd_range_end(0) does nothing). */
PROFD_API uint64_t profd_range_start(const char* domain, const char* name);
PROFD_API void profd_range_end(uint64_t id);
/* Sampled call stacks of what runs above the machine's own, for sessions that want them (TORCH_CALL_STACK); the Python
 * package's sampler uses these. profd_stacks_wanted answers 0 while no session does, else a number that is another one
 * whenever a session begins to; it waits up to timeout_ms while that is `known`. PROFD_DISABLED: there is nothing to
 * wait for before profd_init. Frames make a tree: ids from 1 to 2^31 - 1 of the caller's choice, each with that of the
 * frame that called it (0 = none) and a name of up to 88 bytes; each is sent again when the number has changed. A
 * sample is its innermost frame and the kernel's id of the thread. Both answer 1, or 0: dropped and counted. */
PROFD_API int profd_stacks_wanted(int known, uint32_t timeout_ms);
PROFD_API int profd_stack_frame(uint32_t id, uint32_t caller, const char* name);
PROFD_API int profd_stack_sample(uint32_t frame, int32_t thread);
/* Where the threads stand now, when `profctl stacks` wants to know: the Python package's sampler answers it.
 * profd_stacks_asked: 1 while that is so, else 0; it ends a wait in profd_stacks_wanted. A process in which it was never
 * called has no interpreter that could answer. profd_stacks_answer: a JSON list of up to 128 threads,
 * [{"thread": 4711, "name": "loader", "trains": true, "frames": [["train.py", "main", 12]]}], with the kernel's id as the
 * process sees it (0 = not known) and up to 100 frames of file, function and line, innermost first. Names have up to
 * 512 bytes, all of it up to 128 KiB; left_out: there were more. */
PROFD_API int profd_stacks_asked(void);
PROFD_API int profd_stacks_answer(const char* threads_json, int left_out);
/* Ends up in the manifest of sessions that start afterwards. At most 64 keys of up to 64 letters, digits and any of
 * . _ - : /, with values of up to 1024 bytes. */
PROFD_API int profd_set_metadata(const char* key, const char* value);

/* Which ways of recording kernels, communication and API calls from inside this process sessions may use:
 * any of the bits, 0 = none; all when it is never called. At any time. Nothing is loaded before a session
 * asks; the environment's PROFD_COLLECT=off overrules. */
#define PROFD_ALLOW_MSPTI 1u
#define PROFD_ALLOW_ACLPROF 2u
#define PROFD_ALLOW_ALL 0xFFFFFFFFu
PROFD_API void profd_collect_allow(uint32_t providers);

/* 1 while a session wants marks of this process. */
PROFD_API int profd_active(void);
/* 1 while attached to a daemon. */
PROFD_API int profd_connected(void);
/* JSON about the last session this process started, as last heard: state, dump_path, outcomes, ...
 * Writes at most `size` bytes with the final 0; returns the length it has (like snprintf), or a
 * negative code. `refresh_ms` > 0 asks the daemon first and waits that long. */
PROFD_API int profd_session_json(char* buffer, size_t size, uint32_t refresh_ms);

typedef struct profd_counters {
  uint64_t published; /* marks, ranges and steps handed over */
  uint64_t dropped;   /* lost because the ring was full */
  uint64_t reconnects;
} profd_counters;
PROFD_API void profd_get_counters(profd_counters* counters);

/* Text of the calling thread's last error; never NULL; valid until the thread's next call. */
PROFD_API const char* profd_last_error(void);
PROFD_API const char* profd_version(void);

#ifdef __cplusplus
} /* extern "C" */

namespace profd {
/* A range for the scope it lives in. */
class Range {
 public:
  explicit Range(const char* name) { profd_range_push(name); }
  ~Range() { profd_range_pop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};
/* A training step for the scope it lives in. */
class Step {
 public:
  explicit Step(int64_t step) : step_(step) { profd_step_begin(step_); }
  ~Step() { profd_step_end(step_); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  int64_t step_;
};
}  // namespace profd
#endif

#endif /* PROFD_H_ */
