/*
 * The JVM TI calls that a charge cannot do without, and nothing else: no account, no record, no
 * name. What Heapwarden's callback costs is held against this one.
 *
 * Options, comma-separated:
 *   interval=N  mean bytes between samples
 *   frames=N    frames fetched in one GetStackTrace, 0 for no walk
 *   new=1       each frame's class is looked up, as for methods never seen before
 *   known=N     of the lowest N frames it is not, because they are the same in every sample
 */
#include <jvmti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FRAMES = 1024 };

static jvmtiEnv *env;
static jint frames_wanted, look_up, frames_known, interval = 8192;
static jfieldID context_loader;
static jlong next_tag = 1;
static volatile jlong objects_freed;

static void must(jvmtiError error, const char *what) {
    if (error != JVMTI_ERROR_NONE) {
        fprintf(stderr, "bare agent: %s failed with JVM TI error %d\n", what, (int)error);
        exit(1);
    }
}

static jlong fresh_tag(void) { return __atomic_fetch_add(&next_tag, 1, __ATOMIC_RELAXED); }

/* Whatever is seen for the first time gets a tag, as classes and loaders do. */
static void recognise(jobject object) {
    jlong tag = 0;
    must((*env)->GetTag(env, object, &tag), "GetTag");
    if (tag == 0) must((*env)->SetTag(env, object, fresh_tag()), "SetTag");
}

static void JNICALL sampled(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jobject object,
                            jclass class, jlong size) {
    (void)jvmti, (void)size;
    recognise(class);
    if (frames_wanted) {
        jvmtiFrameInfo frames[MAX_FRAMES];
        jint count = 0;
        must((*env)->GetStackTrace(env, NULL, 0, frames_wanted, frames, &count), "GetStackTrace");
        if (look_up) {
            jint fresh = count < frames_wanted ? count - frames_known : count;
            for (jint i = 0; i < fresh; i++) {
                jclass owner = NULL;
                must((*env)->GetMethodDeclaringClass(env, frames[i].method, &owner),
                     "GetMethodDeclaringClass");
                recognise(owner);
                (*jni)->DeleteLocalRef(jni, owner);
            }
        }
    }
    jobject loader = context_loader ? (*jni)->GetObjectField(jni, thread, context_loader) : NULL;
    if (loader) {
        recognise(loader);
        (*jni)->DeleteLocalRef(jni, loader);
    }
    must((*env)->SetTag(env, object, fresh_tag()), "SetTag");
}

static void JNICALL prepared(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass class) {
    (void)jvmti, (void)jni, (void)thread;
    recognise(class);
}

static void JNICALL freed(jvmtiEnv *jvmti, jlong tag) {
    (void)jvmti, (void)tag;
    objects_freed++;
}

static void JNICALL started(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread) {
    (void)jvmti, (void)thread;
    jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
    context_loader =
        (*jni)->GetFieldID(jni, class, "contextClassLoader", "Ljava/lang/ClassLoader;");
    must((*env)->SetEventNotificationMode(env, JVMTI_ENABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, NULL),
         "SetEventNotificationMode");
}

static void read_options(char *options) {
    for (char *word = strtok(options, ","); word; word = strtok(NULL, ",")) {
        if (sscanf(word, "interval=%d", &interval) == 1) continue;
        if (sscanf(word, "frames=%d", &frames_wanted) == 1) continue;
        if (sscanf(word, "new=%d", &look_up) == 1) continue;
        if (sscanf(word, "known=%d", &frames_known) == 1) continue;
        fprintf(stderr, "bare agent: unknown option %s\n", word);
        exit(1);
    }
    if (frames_wanted > MAX_FRAMES) frames_wanted = MAX_FRAMES;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    (void)reserved;
    if (options) read_options(options);
    if ((*vm)->GetEnv(vm, (void **)&env, JVMTI_VERSION_11) != JNI_OK) return JNI_ERR;
    jvmtiCapabilities wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.can_tag_objects = 1;
    wanted.can_generate_object_free_events = 1;
    wanted.can_generate_sampled_object_alloc_events = 1;
    must((*env)->AddCapabilities(env, &wanted), "AddCapabilities");
    jvmtiEventCallbacks callbacks;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.VMInit = started;
    callbacks.ClassPrepare = prepared;
    callbacks.ObjectFree = freed;
    callbacks.SampledObjectAlloc = sampled;
    must((*env)->SetEventCallbacks(env, &callbacks, sizeof callbacks), "SetEventCallbacks");
    must((*env)->SetHeapSamplingInterval(env, interval), "SetHeapSamplingInterval");
    jvmtiEvent events[] = {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_CLASS_PREPARE, JVMTI_EVENT_OBJECT_FREE};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        must((*env)->SetEventNotificationMode(env, JVMTI_ENABLE, events[i], NULL),
             "SetEventNotificationMode");
    return JNI_OK;
}
