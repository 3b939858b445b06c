/* What libprofd sees of a library that collects from inside the process (libprofd_mspti.so, which fills a ring,
 * and libprofd_aclprof.so, which leaves files). libprofd opens it with dlopen when a session first asks, and
 * never closes it. One function is exported; what it returns lives as long as the process. All of it may be
 * called from any thread; nothing here waits for the vendor's library but stop, by its deadline, and nothing
 * throws. */
#ifndef PROFD_COLLECT_PLUGIN_H_
#define PROFD_COLLECT_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROFD_COLLECT_PLUGIN_VERSION 2u
#define PROFD_COLLECT_PLUGIN_FUNCTION "profd_collect_plugin"

/* What a session may ask for; bits of `kinds`. */
enum profd_collect_kind {
  PROFD_COLLECT_KERNEL = 1,
  PROFD_COLLECT_COMMUNICATION = 2,
  PROFD_COLLECT_ACL_API = 4,
  PROFD_COLLECT_NODE_API = 8,
  PROFD_COLLECT_RUNTIME_API = 16,
  PROFD_COLLECT_MARKER = 32,
  PROFD_COLLECT_MEMORY = 64
};

/* How long a record may stay in the process where the order does not set it, ms. */
enum { PROFD_COLLECT_FLUSH_MS = 500 };

enum profd_collect_state {
  PROFD_COLLECT_OFF = 0,
  PROFD_COLLECT_WAITING = 1,     /* the process has not loaded the runtime yet; tried again each second */
  PROFD_COLLECT_ON = 2,
  PROFD_COLLECT_PARTIAL = 3,     /* on, but some kinds were refused or left out */
  PROFD_COLLECT_SILENT = 4,      /* on, but of some kinds no record came while steps went by */
  PROFD_COLLECT_BUSY = 5,        /* another profiler is in the process; tried again each 10 s */
  PROFD_COLLECT_UNSUPPORTED = 6, /* no library, or not one that can serve what is asked for */
  PROFD_COLLECT_FAILED = 7,
  PROFD_COLLECT_STOPPING = 8, /* files are being written, which may take a while */
  PROFD_COLLECT_FILES = 9     /* they are there, until files_taken */
};

struct profd_collect_config {
  size_t size; /* of this struct */
  uint32_t kinds;
  uint32_t flush_ms;   /* 0 = PROFD_COLLECT_FLUSH_MS */
  uint64_t ring_bytes; /* 0 = 8 MiB; of the first start */
  /* Called after the state has changed, on a thread of the library: it must return at once. May be null. */
  void (*on_change)(void* user);
  /* Steps that the process has begun so far; null: not known. */
  uint64_t (*steps)(void* user);
  void* user;
  /* Of the plug-in that leaves files; texts are read during start. */
  const char* session;        /* its id */
  uint64_t aclprof_bits;      /* aclprofCreateConfig's dataTypeConfig; 0 = nothing is asked for */
  uint32_t aclprof_metrics;   /* aclprofAicoreMetrics */
  uint32_t max_permille;      /* of a core that the plug-in with the ring may take; 0 = no limit */
  const char* aclprof_config; /* of aclprofSetConfig: lines "storage_limit=500MB"; may be null */
  /* Not 0: the application's marks are taken by libprofd (libprofd_mstx.so), too. Null: they always are. */
  int (*takes_marks)(void* user);
};

struct profd_collect_report {
  size_t size; /* of this struct */
  int32_t state;
  int32_t code;      /* of the vendor's library; 0 = none */
  uint32_t kinds;    /* that are collected */
  uint32_t left_out; /* kinds that are not, to stay within max_permille */
  uint64_t records;  /* published in the ring */
  uint64_t dropped;  /* records dropped because the ring was full */
  uint64_t lost_bytes;
  char detail[256];
  char version[64];  /* of the vendor's library, as far as it can be seen */
  uint64_t starts;  /* so far */
  uint64_t flushed; /* of them: what had been recorded before is in the ring */
  uint32_t silent;  /* of kinds: those without a record, while the state is PROFD_COLLECT_SILENT */
};

struct profd_collect_calls {
  uint32_t version;
  /* Starts collecting, or changes the config of what runs (one that leaves files keeps the first). 0, or an errno:
   * nothing was started; EBUSY: the run before is still ending. */
  int (*start)(const struct profd_collect_config* config);
  /* The memfd of the activity ring (proto/attach/activity_ring.h); -1 before the first start. It stays the
   * same and open for the life of the process. */
  int (*ring)();
  void (*report)(struct profd_collect_report* report);
  /* Ends in good order. 1: ended, or its files are there; 0: not within deadline_ms (which may be 0), it is still
   * ending. */
  int (*stop)(uint32_t deadline_ms);
  /* While the state is PROFD_COLLECT_FILES: the directory, O_RDONLY, the plug-in's own; else -1. */
  int (*files)();
  /* The files are no longer needed, or will not be: they are removed as soon as they are there. */
  void (*files_taken)();
};

const struct profd_collect_calls* profd_collect_plugin();

#ifdef __cplusplus
}
#endif

#endif /* PROFD_COLLECT_PLUGIN_H_ */
