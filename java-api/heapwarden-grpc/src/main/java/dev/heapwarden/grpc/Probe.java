package dev.heapwarden.grpc;

import dev.heapwarden.Admission;
import dev.heapwarden.Scope;
import io.grpc.Context;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.Status;

/**
 * A call that was let in as a probe. What runs of it is inside, on whatever thread. It ends when the call is
 * closed, complete or cancelled, or when its code fails, whichever is first. Thread-safe.
 */
final class Probe implements Context.CancellationListener {
    private final Admission admission;

    Probe(Admission admission) {
        this.admission = admission;
    }

    /** Starts the call. */
    <Q, A> ServerCall.Listener<Q> start(
            ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
        boolean begun = false;
        try {
            // gRPC cancels a call's context at its end, whichever that is, also if no listener of ours hears of it:
            // an interceptor before this one may fail.
            Context.current().addListener(this, Runnable::run);
            ServerCall<Q, A> answered = new Answered<>(call, this);
            Scope scope = admission.enter();
            try {
                ServerCall.Listener<Q> listener = new Heard<>(next.startCall(answered, headers), this);
                begun = true;
                return listener;
            } finally {
                scope.close();
            }
        } finally {
            if (!begun) {
                admission.close();
            }
        }
    }

    @Override
    public void cancelled(Context context) {
        admission.close();
    }

    private void inside(Runnable part) {
        Scope scope = admission.enter();
        try {
            part.run();
        } finally {
            scope.close();
        }
    }

    /** Runs a callback. If it fails, gRPC ends the call. */
    private void hear(Runnable callback) {
        boolean done = false;
        try {
            inside(callback);
            done = true;
        } finally {
            if (!done) {
                admission.close();
            }
        }
    }

    /** Runs what ends the call. */
    private void end(Runnable last) {
        try {
            inside(last);
        } finally {
            admission.close();
        }
    }

    /** The call as its method answers it. */
    private static final class Answered<Q, A> extends SimpleForwardingServerCall<Q, A> {
        private final Probe probe;

        Answered(ServerCall<Q, A> call, Probe probe) {
            super(call);
            this.probe = probe;
        }

        @Override
        public void sendHeaders(Metadata headers) {
            probe.inside(() -> super.sendHeaders(headers));
        }

        @Override
        public void sendMessage(A message) {
            probe.inside(() -> super.sendMessage(message));
        }

        @Override
        public void close(Status status, Metadata trailers) {
            probe.end(() -> super.close(status, trailers));
        }
    }

    /** The listener that tells the probe of the call's events. */
    private static final class Heard<Q> extends SimpleForwardingServerCallListener<Q> {
        private final Probe probe;

        Heard(ServerCall.Listener<Q> listener, Probe probe) {
            super(listener);
            this.probe = probe;
        }

        @Override
        public void onMessage(Q message) {
            probe.hear(() -> super.onMessage(message));
        }

        @Override
        public void onHalfClose() {
            probe.hear(super::onHalfClose);
        }

        @Override
        public void onReady() {
            probe.hear(super::onReady);
        }

        @Override
        public void onCancel() {
            probe.end(super::onCancel);
        }

        @Override
        public void onComplete() {
            probe.end(super::onComplete);
        }
    }
}
