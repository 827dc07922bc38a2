/*
 * An agent that takes the sampling capability and does nothing with it: another profiler, as far as
 * a second agent can tell. Prints one line so that a test knows it was there.
 */
#include <jvmti.h>
#include <stdio.h>
#include <string.h>

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    jvmtiEnv *jvmti = NULL;
    jvmtiCapabilities wanted;
    (void)options;
    (void)reserved;
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
        return JNI_ERR;
    }
    memset(&wanted, 0, sizeof wanted);
    wanted.can_generate_sampled_object_alloc_events = 1;
    if ((*jvmti)->AddCapabilities(jvmti, &wanted) != JVMTI_ERROR_NONE) {
        return JNI_ERR;
    }
    fprintf(stderr, "capability holder: taken\n");
    return JNI_OK;
}
