// The findings, as policy-report/src/findings.rs declares them: a test writes down what is missing here.

export const DECLARED = {
  "accounts-exceed-heap": {
    severities: ["error"],
    sentence: "",
    advice: "",
  },
  "ineffective": {
    severities: ["error"],
    sentence: "",
    advice: "",
  },
  "over-limit": {
    severities: ["warning"],
    sentence: "",
    advice: "",
  },
  "never-refused": {
    severities: ["warning", "error"],
    sentence: "",
    advice: "",
  },
  "suspect": {
    severities: ["note", "warning"],
    sentence: "",
    advice: "",
  },
  "threads-killed": {
    severities: ["warning"],
    sentence: "",
    advice: "",
  },
  "refused-before": {
    severities: ["note", "warning"],
    sentence: "",
    advice: "",
  },
  "waited-before": {
    severities: ["note", "warning"],
    sentence: "",
    advice: "",
  },
  "over-soft-limit": {
    severities: ["warning"],
    sentence: "account {account} is over its soft limit",
    advice: "see what it holds (heapwarden top); if it needs that, raise its soft limit in the policy",
  },
  "over-direct-limit": {
    severities: ["warning"],
    sentence: "account {account} has more off the heap than its direct-limit",
    advice: "in mode enforce it is given no more until it lets go: close what it keeps open, or raise its direct-limit in the policy",
  },
  "heap-is-short": {
    severities: ["warning"],
    sentence: "the heap is short: the latest collection left less free than accounts near their limits can take before the next",
    advice: "give the JVM a larger heap (-Xmx), or lower the limits until their sum fits into it; meanwhile the account that is furthest beyond its limit, weighed by its priority, is refused first",
  },
  "leak-suspected": {
    severities: ["warning"],
    sentence: "account {account} is suspected to leak",
    advice: "see where it is allocated (heapwarden leaks); growth that is intended can be acknowledged in the policy: [[leak]] with its account and class",
  },
  "retired-loader": {
    severities: ["warning"],
    sentence: "the class loader of an undeployed version of {account} still lives",
    advice: "run a collection (jcmd PID GC.run); if this stays, the class loader leaks, and heapwarden paths PID --retired shows the thread, thread local, driver or listener that keeps it alive",
  },
  "threads-left": {
    severities: ["warning"],
    sentence: "threads of an undeployed version of {account} still run",
    advice: "have the application end them when it stops: shut its executors down, cancel its timers, interrupt its threads; until then each keeps the old class loader and all that it refers to",
  },
  "left-behind": {
    severities: ["note"],
    sentence: "{account} holds memory that was left by an undeployed version; its class loader is gone",
    advice: "other code keeps objects that this version made, such as a shared cache or session store; they go when it drops them, and count for the account until then",
  },
  "limit-above-heap": {
    severities: ["warning"],
    sentence: "account {account} cannot reach its limit: the JVM runs out of memory first",
    advice: "lower the limit, or raise -Xmx",
  },
  "limits-overcommitted": {
    severities: ["note"],
    sentence: "the limits together exceed the maximum heap: the JVM can run out of memory before any account is over its limit",
    advice: "fine if services do not peak together; else lower limits or raise -Xmx",
  },
  "interval-too-coarse": {
    severities: ["warning"],
    sentence: "the sampling interval is too coarse for the limit of account {account}: it is refused only at three standard errors above the limit",
    advice: "",
  },
  "policy-rejected": {
    severities: ["error"],
    sentence: "the agent has rejected the policy file; the last good policy stays in force (without one, the agent observes)",
    advice: "",
  },
  "no-samples": {
    severities: ["note"],
    sentence: "nothing was sampled yet, so all accounts are empty",
    advice: "put load on the application; after attach, the first allocation buffer of each thread is not sampled",
  },
  "nothing-live-yet": {
    severities: ["note"],
    sentence: "",
    advice: "wait for a collection, or run one (jcmd PID GC.run); charged bytes count from the first sample on",
  },
  "samples-dropped": {
    severities: ["warning"],
    sentence: "accounts are too small: samples were dropped",
    advice: "",
  },
  "evidence-budget-spent": {
    severities: ["warning"],
    sentence: "the collections that the agent asks for have used up their budget, so accounts over their limit are found late",
    advice: "raise [enforcement] evidence-budget, or the limit of the account that is near it all the time",
  },
  "observes": {
    severities: ["note"],
    sentence: "the policy only observes: nothing is refused",
    advice: "set [enforcement] mode = \"enforce\" once you agree with what would be refused",
  },
  "accounts-omitted": {
    severities: ["note"],
    sentence: "",
    advice: "",
  },
};
