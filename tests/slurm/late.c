/* Keeps rank 0 in the first fence of MPI_Init for half a second, while the ranks of other nodes go on: what a busy node does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*Callback)(int, void *);
typedef int (*Fence)(const void *, size_t, const void *, size_t, Callback, void *);

static Callback callback;

static void *wait_and_tell(void *data) {
    usleep(500000);
    callback(0, data);
    return NULL;
}

/* On a thread of its own: PMIx goes on. */
static void later(int status, void *data) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait_and_tell, data);
}

int PMIx_Fence_nb(const void *processes, size_t count, const void *info, size_t infos, Callback done, void *data) {
    Fence fence = (Fence)dlsym(dlopen("libpmix.so.2", RTLD_NOW), "PMIx_Fence_nb");
    const char *rank = getenv("SLURM_PROCID");
    if (!callback && rank && !strcmp(rank, "0")) {
        callback = done;
        done = later;
    }
    return fence(processes, count, info, infos, done, data);
}
