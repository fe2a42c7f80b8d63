//! What the user asked for: read from the environment that the launcher (or a test) sets.

use std::env;

use legate_runtime::Mapper;

/// Fewest elements worth deferring, by default: below it NumPy does an operation in less time than a hand-over costs.
const DEFAULT_MIN_CHUNK: usize = 32_768;
/// Steps of exchanges that a program may lose by sharing out arrays of a size: they take it about a millisecond.
const MOST_STEPS: usize = 64;
/// As many as a small test takes.
const MOST_STEPS_OF_FEW: usize = 8;
/// Launches in a window, by default.
const DEFAULT_WINDOW: usize = 128;

/// Windows that may wait, by default.
const DEFAULT_RUN_AHEAD: usize = 4;

/// The settings in force.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Worker threads.
    pub(crate) cpus: usize,
    /// Virtual processors that tiles are cut for.
    pub(crate) processors: usize,
    /// Bytes that arrays may hold.
    pub(crate) sysmem: usize,
    /// Fewest elements of a deferred array.
    pub(crate) min_chunk: usize,
    /// Launches in a window.
    pub(crate) window: usize,
    /// Closed windows that may wait.
    pub(crate) run_ahead: usize,
    /// Whether launches are joined.
    pub(crate) fusion: bool,
    /// Whether several shards cut arrays into blocks of two axes.
    pub(crate) blocks: bool,
    /// Whether calls are counted by user line.
    pub(crate) report: bool,
    /// Whether plans are kept as text.
    pub(crate) show_plan: bool,
    /// Whether it is kept when each group of operations ran.
    pub(crate) profile: bool,
}

impl Settings {
    /// Reads `LEGATE_*`; what is not there gets the machine's values.
    pub(crate) fn from_environment() -> Settings {
        let number = |name: &str| env::var(name).ok().and_then(|text| text.trim().parse::<usize>().ok());
        let switch = |name: &str, default: bool| match env::var(name).as_deref() {
            Ok("0" | "") => false,
            Ok(_) => true,
            Err(_) => default,
        };
        let cpus = number("LEGATE_CPUS").unwrap_or_else(available_cpus).max(1);
        Settings {
            cpus,
            processors: number("LEGATE_PROCESSORS").unwrap_or(cpus).max(1),
            sysmem: number("LEGATE_SYSMEM").unwrap_or_else(system_memory),
            min_chunk: number("LEGATE_MIN_CPU_CHUNK").unwrap_or(DEFAULT_MIN_CHUNK).max(1),
            window: number("LEGATE_WINDOW_SIZE").unwrap_or(DEFAULT_WINDOW).max(1),
            run_ahead: number("LEGATE_RUN_AHEAD").unwrap_or(DEFAULT_RUN_AHEAD),
            fusion: switch("LEGATE_FUSION", true),
            blocks: switch("LEGATE_BLOCKS", false),
            report: switch("LEGATE_REPORT", false),
            show_plan: switch("LEGATE_SHOW_PLAN", false),
            profile: switch("LEGATE_PROFILE", false),
        }
    }

    /// Steps of exchanges that sharing out arrays of a size may cost beyond what it saves; few where single elements are tiles, as in
    /// tests.
    pub(crate) fn most_steps(&self) -> usize {
        if self.min_chunk == 1 { MOST_STEPS_OF_FEW } else { MOST_STEPS }
    }

    /// The settings of a runtime that runs.
    pub(crate) fn pairs(&self, mapper: &Mapper) -> Vec<(&'static str, usize)> {
        vec![
            ("cpus", mapper.cpus),
            ("processors", mapper.processors),
            ("sysmem", mapper.memory_limit),
            ("min_chunk", mapper.min_tile),
            ("window", mapper.window),
            ("run_ahead", mapper.run_ahead),
            ("fusion", usize::from(mapper.fusion)),
            ("blocks", usize::from(mapper.blocks)),
            ("report", usize::from(self.report)),
            ("show_plan", usize::from(mapper.show_plan)),
            ("profile", usize::from(self.profile)),
        ]
    }
}

/// Cores that this process may use.
fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Bytes of memory of this machine, or of its control group where that allows less.
fn system_memory() -> usize {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok())
        .map_or(usize::MAX, |kibibytes| kibibytes << 10);
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse::<usize>().ok())
        .unwrap_or(usize::MAX);
    machine.min(group)
}
