/*
 * Times the SampledObjectAlloc callback of another agent.
 *
 * Loaded as -agentpath:stopwatch.so=LIBRARY=OPTIONS. Loads LIBRARY, gives it its OPTIONS, and
 * slips a clock around the callback that it installs, so that two agents are held against one
 * watch, with what their own entry and exit cost included. While LIBRARY starts, the VM's GetEnv
 * is ours, and hands out environments whose SetEventCallbacks is ours; nothing else changes.
 *
 * Only the thread that called Stopwatch.start() is timed. All state belongs to that thread.
 */
#include <dlfcn.h>
#include <jvmti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Buckets of durations: 64 to each doubling, so that a quantile is at most 1.6 % off. */
enum { PER_DOUBLING_LOG2 = 6, BUCKETS = 40 << PER_DOUBLING_LOG2 };

static uint64_t counts[BUCKETS];
static uint64_t samples;
static uint64_t clock_ns;
static __thread int timed_thread;

static jvmtiEventSampledObjectAlloc inner_callback;
static jvmtiError(JNICALL *real_set_callbacks)(jvmtiEnv *, const jvmtiEventCallbacks *, jint);
static jint(JNICALL *real_get_env)(JavaVM *, void **, jint);
static struct JNIInvokeInterface_ invoke_table;
static struct jvmtiInterface_1_ jvmti_table;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int bucket(uint64_t ns) {
    if (ns < 1u << PER_DOUBLING_LOG2) ns = 1u << PER_DOUBLING_LOG2;
    int doubling = 63 - __builtin_clzll(ns);
    int within = (int)(ns >> (doubling - PER_DOUBLING_LOG2)) & ((1 << PER_DOUBLING_LOG2) - 1);
    int index = (doubling << PER_DOUBLING_LOG2) + within;
    return index < BUCKETS ? index : BUCKETS - 1;
}

static uint64_t lower_bound_ns(int index) {
    uint64_t within = (uint64_t)index & ((1 << PER_DOUBLING_LOG2) - 1);
    return ((1u << PER_DOUBLING_LOG2) + within) << (index >> PER_DOUBLING_LOG2) >> PER_DOUBLING_LOG2;
}

/* The middle of the bucket below which `share` of the samples lie, less the clock's own time. */
static uint64_t quantile_ns(double share) {
    uint64_t wanted = (uint64_t)((double)samples * share), seen = 0;
    for (int i = 0; i < BUCKETS; i++) {
        seen += counts[i];
        if (seen > wanted) {
            uint64_t ns = (lower_bound_ns(i) + lower_bound_ns(i + 1)) / 2;
            return ns > clock_ns ? ns - clock_ns : 0;
        }
    }
    return 0;
}

static void JNICALL timed_callback(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object,
                                   jclass class, jlong size) {
    if (!timed_thread) {
        inner_callback(jvmti, jni, thread, object, class, size);
        return;
    }
    uint64_t begun = now_ns();
    inner_callback(jvmti, jni, thread, object, class, size);
    counts[bucket(now_ns() - begun)]++;
    samples++;
}

static jvmtiError JNICALL set_callbacks(jvmtiEnv *env, const jvmtiEventCallbacks *given, jint size) {
    jvmtiEventCallbacks table;
    memset(&table, 0, sizeof table);
    if (given) memcpy(&table, given, (size_t)size < sizeof table ? (size_t)size : sizeof table);
    if (table.SampledObjectAlloc) {
        inner_callback = table.SampledObjectAlloc;
        table.SampledObjectAlloc = timed_callback;
    }
    return real_set_callbacks(env, &table, (jint)sizeof table);
}

static jint JNICALL get_env(JavaVM *vm, void **env, jint version) {
    jint code = real_get_env(vm, env, version);
    int is_jvmti = (version & JVMTI_VERSION_MASK_INTERFACE_TYPE) == JVMTI_VERSION_INTERFACE_JVMTI;
    if (code == JNI_OK && is_jvmti) {
        jvmtiEnv *jvmti = *env;
        if (!real_set_callbacks) {
            jvmti_table = **jvmti;
            real_set_callbacks = jvmti_table.SetEventCallbacks;
            jvmti_table.SetEventCallbacks = set_callbacks;
        }
        *jvmti = &jvmti_table;
    }
    return code;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    char *path = strdup(options ? options : "");
    char *rest = strchr(path, '=');
    if (!rest) {
        fprintf(stderr, "stopwatch: write LIBRARY=OPTIONS\n");
        return JNI_ERR;
    }
    *rest++ = 0;
    void *library = dlopen(path, RTLD_NOW);
    jint (*load)(JavaVM *, char *, void *) = NULL;
    if (library) *(void **)&load = dlsym(library, "Agent_OnLoad");
    if (!load) {
        fprintf(stderr, "stopwatch: %s\n", dlerror());
        return JNI_ERR;
    }
    const struct JNIInvokeInterface_ *real = *vm;
    invoke_table = *real;
    real_get_env = real->GetEnv;
    invoke_table.GetEnv = get_env;
    *vm = &invoke_table;
    jint code = load(vm, rest, reserved);
    *vm = real;
    if (code == JNI_OK && !inner_callback) {
        fprintf(stderr, "stopwatch: the agent installed no SampledObjectAlloc callback\n");
        return JNI_ERR;
    }
    return code;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The VM looks for native methods in agent libraries too. */
JNIEXPORT void JNICALL Java_micro_Stopwatch_start(JNIEnv *jni, jclass class) {
    (void)jni, (void)class;
    enum { READINGS = 1001 };
    static uint64_t readings[READINGS];
    for (int i = 0; i < READINGS; i++) {
        uint64_t begun = now_ns();
        readings[i] = now_ns() - begun;
    }
    qsort(readings, READINGS, sizeof *readings, ascending);
    clock_ns = readings[READINGS / 2];
    memset(counts, 0, sizeof counts);
    samples = 0;
    timed_thread = 1;
}

JNIEXPORT jlong JNICALL Java_micro_Stopwatch_samples(JNIEnv *jni, jclass class) {
    (void)jni, (void)class;
    return (jlong)samples;
}

JNIEXPORT jlong JNICALL Java_micro_Stopwatch_quantileNs(JNIEnv *jni, jclass class, jdouble share) {
    (void)jni, (void)class;
    return (jlong)quantile_ns(share);
}
