//! Arrays that do not fit the rest of a thread's allocation buffer: before JDK 25 the JVM samples what refills the
//! buffer too often (JDK-8356372), and the agent sets a flag against it.

use heapwarden_tests::jdk::{Vm, every_vm, on_each};
use heapwarden_tests::jvm::{Builder, victim};
use heapwarden_tests::truth::Truth;

const POLICY: &str = "[sampling]\ninterval = \"16KiB\"\ncpu-budget = \"none\"\n\
                      [[account]]\nname = \"orders\"\npackages = [\"com.acme.orders\"]\n";
/// Bytes held for each estimate, about: an error of 7 %.
const HELD_BYTES: usize = 24_000_000;
const SIZES: [usize; 4] = [512, 1024, 2048, 4096];

#[derive(Debug, Clone, Copy)]
struct Case {
    size: usize,
    threads: usize,
    /// Objects of 24 bytes after each array.
    small: usize,
}

impl Case {
    fn order(&self) -> String {
        let each = self.size + 24 * self.small;
        let arrays = (HELD_BYTES / each / self.threads).max(1);
        let length = self.size - 16;
        let batch = match self.small {
            0 => format!("bytes:{length}*{arrays}"),
            small => format!("bytes:{length}*1 object*{small} ").repeat(arrays),
        };
        format!("threads {} com.acme.orders {batch}", self.threads)
    }
}

fn holder(vm: &Vm, buffer: &str) -> Builder {
    let mut builder = victim(vm, "victim.Holder")
        .argument("com.acme.orders")
        .heap("512m")
        .policy(POLICY);
    if buffer != "default" {
        builder = builder
            .flag(&format!("-XX:TLABSize={buffer}"))
            .flag("-XX:-ResizeTLAB");
    }
    builder
}

#[test]
fn explore() {
    let var = |name: &str, or: &str| std::env::var(name).unwrap_or(or.to_owned());
    let jdk: u32 = var("X_JDK", "17").parse().unwrap();
    let collectors = var("X_GC", "G1");
    let buffers = var("X_BUFFERS", "default 2k 16k 64k 512k");
    let threads = var("X_THREADS", "1 20 200");
    let smalls = var("X_SMALL", "0 20");
    let rounds: usize = var("X_ROUNDS", "3").parse().unwrap();
    let vms: Vec<Vm> = every_vm()
        .iter()
        .filter(|vm| vm.jdk.feature == jdk && collectors.split(' ').any(|c| format!("{:?}", vm.collector) == c))
        .cloned()
        .collect();
    for buffer in buffers.split(' ') {
        on_each(&vms, |vm| {
            for option in var("X_FRACTIONS", "64 8 2 1").split(' ') {
                let mut jvm = holder(vm, buffer).flag(&format!("-XX:TLABRefillWasteFraction={option}")).start();
                for threads in threads.split(' ') {
                    for small in smalls.split(' ') {
                        for size in var("X_SIZES", "1024 4096 16384").split(' ') { let size: usize = size.parse().unwrap();
                            let case = Case { size, threads: threads.parse().unwrap(), small: size * small.parse::<usize>().unwrap() / 2400 };
                            let mut others = 0.0; let (mut all, mut arrays, mut zs) = (0.0, 0.0, 0.0);
                            for _ in 0..rounds {
                                let truth = Truth::of(&jvm.ask(&case.order()));
                                let accounts = jvm.settled();
                                let held = accounts.holding("orders");
                                let classes = accounts.find("orders").unwrap()["classes"].as_array().unwrap();
                                let class = classes.iter().find(|c| c["class"] == "byte[]").map_or(0.0, |c| c["live_bytes"].as_f64().unwrap());
                                let of_arrays: u64 = truth.sizes.iter().filter(|(s, _)| *s as usize >= 512).map(|(s, n)| s * n).sum();
                                all += held.live_bytes / truth.bytes as f64 / rounds as f64;
                                arrays += class / of_arrays as f64 / rounds as f64;
                                others += (held.live_bytes - class) / (truth.bytes - of_arrays).max(1) as f64 / rounds as f64;
                                zs += (held.live_bytes - truth.bytes as f64) / truth.variance(16384.0).sqrt() / rounds as f64;
                                jvm.ask("drop");
                                jvm.settled();
                            }
                            eprintln!("{vm} f{option} T {buffer} t{threads} small {small}% s{size}: all {all:.3} arrays {arrays:.3} others {:.3} z {zs:+.2}", others);
                        }
                    }
                }
                jvm.finish();
            }
        });
    }
}
