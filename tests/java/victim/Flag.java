package victim;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;

/** A flag of the VM: {@code flag NAME} tells its value, {@code flag NAME VALUE} sets it. */
final class Flag {
    private Flag() {}

    static void run(String[] words) {
        HotSpotDiagnosticMXBean flags =
                ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        if (words.length > 2) {
            flags.setVMOption(words[1], words[2]);
        }
        Protocol.say("flag " + flags.getVMOption(words[1]).getValue());
    }
}
