//! The one shim of a process: the runtime, the settings, and what the shim keeps of the host NumPy.
//!
//! Made once, when `legate._core` is loaded or first configured; never torn down (the process ends first).

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use legate_runtime::{Field, Issued, Mapper, Runtime, RuntimeError, Sequence};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule};

use crate::dtypes::Dtypes;
use crate::events::Origins;
use crate::lower::Kernels;
use crate::report::Report;
use crate::settings::Settings;
use crate::ufuncs::Resolutions;

/// What the shim knows.
pub(crate) struct Shim {
    /// What the user asked for.
    pub(crate) settings: Settings,
    /// Runs launches.
    pub(crate) runtime: Runtime<Kernels>,
    /// The host NumPy.
    pub(crate) numpy: Py<PyModule>,
    /// Native dtypes.
    pub(crate) dtypes: Dtypes,
    /// Inner loops by ufunc and types.
    pub(crate) resolutions: Mutex<Resolutions>,
    /// User lines of launches that may warn.
    pub(crate) origins: Origins,
    /// Counts for `--report`.
    pub(crate) report: Mutex<Report>,
    /// Number of shards.
    pub(crate) shards: usize,
}

/// Highest launch that the program has waited for: decides, in program order, what counts as resident.
static SYNCED: AtomicU64 = AtomicU64::new(0);

/// `Settings::min_chunk` of the shim that runs.
static MIN_CHUNK: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Number of shards.
static SHARDS: AtomicUsize = AtomicUsize::new(1);

/// Whether there are other shards.
#[inline]
pub(crate) fn is_several() -> bool {
    SHARDS.load(Ordering::Relaxed) > 1
}

/// Elements from which on an array is large.
#[inline]
pub(crate) fn min_chunk() -> usize {
    MIN_CHUNK.load(Ordering::Relaxed)
}

/// Chunks of an array that is middling: one pass over it by NumPy, at once, takes no longer than a launch and the wait for it.
pub(crate) const MIDDLING_CHUNKS: usize = 4;

/// Elements from which on an array is not even middling. On several shards, whose parts are elsewhere, none is.
#[inline]
pub(crate) fn middling() -> usize {
    if is_several() { min_chunk() } else { min_chunk().saturating_mul(MIDDLING_CHUNKS) }
}

/// Whether the program has waited for a launch already.
#[inline]
pub(crate) fn is_synced(sequence: Sequence) -> bool {
    sequence <= SYNCED.load(Ordering::Relaxed)
}

/// Highest launch that the program has waited for.
pub(crate) fn known() -> Sequence {
    SYNCED.load(Ordering::Relaxed)
}

/// How long a wait goes on without a look at signals.
const PATIENCE: Duration = Duration::from_millis(50);

static SHIM: PyOnceLock<Shim> = PyOnceLock::new();
static PENDING: OnceLock<Settings> = OnceLock::new();

/// Python functions that answer `__array_function__`, by function.
pub(crate) fn array_functions(py: Python<'_>) -> Bound<'_, PyDict> {
    static TABLE: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    TABLE.get_or_init(py, || PyDict::new(py).unbind()).bind(py).clone()
}

/// Functions of NumPy whose results are no views of their operands, which run at once on ones that are done: for each up to how many
/// chunks where a call has one argument and names no axis, up to how many else, and what NumPy itself runs.
pub(crate) fn functions_at_once(py: Python<'_>) -> Bound<'_, PyDict> {
    static TABLE: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    TABLE.get_or_init(py, || PyDict::new(py).unbind()).bind(py).clone()
}

/// Python functions that answer methods, by name.
pub(crate) fn methods(py: Python<'_>) -> Bound<'_, PyDict> {
    static TABLE: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    TABLE.get_or_init(py, || PyDict::new(py).unbind()).bind(py).clone()
}

/// Sets what the shim starts with; an error when it has started already.
pub(crate) fn configure(py: Python<'_>, settings: Settings) -> PyResult<()> {
    if SHIM.get(py).is_some() || PENDING.set(settings).is_err() {
        return Err(PyRuntimeError::new_err("legate is configured once, before its first array is made"));
    }
    Ok(())
}

/// The shim, started on first use.
pub(crate) fn shim(py: Python<'_>) -> PyResult<&Shim> {
    if SHIM.get(py).is_none() {
        // Interception may ask for the shim while NumPy is being imported: not inside the making of it.
        py.import("numpy")?;
    }
    SHIM.get_or_try_init(py, || {
        let settings = PENDING.get().cloned().unwrap_or_else(Settings::from_environment);
        let numpy = py.import("numpy")?;
        crate::blas::restore_environment();
        crate::numpy_api::connect(&numpy)?;
        crate::mapped::connect(&numpy)?;
        crate::ops::assign::register(&numpy)?;
        crate::ops::choose::register(&numpy)?;
        crate::ops::join::register(&numpy)?;
        crate::ops::product::register(&numpy)?;
        crate::ops::vectors::register(&numpy)?;
        crate::memory::keep_freed();
        MIN_CHUNK.store(settings.min_chunk, Ordering::Relaxed);
        crate::slots::install(py);
        crate::hook::install(&numpy)?;
        let transport = crate::shards::transport();
        SHARDS.store(transport.shards(), Ordering::Relaxed);
        let mapper = Mapper {
            cpus: settings.cpus,
            processors: settings.processors,
            min_tile: settings.min_chunk,
            most_steps: settings.most_steps(),
            window: settings.window,
            run_ahead: settings.run_ahead,
            fusion: settings.fusion,
            blocks: settings.blocks,
            memory_limit: settings.sysmem,
            show_plan: settings.show_plan,
        };
        let runtime = Runtime::new(Kernels::new(transport.shards()), mapper, transport.clone());
        if settings.profile {
            runtime.keep_times();
        }
        if let Some(digest) = crate::shards::digest() {
            // Launches are issued with the GIL held.
            runtime.record(digest, || Python::attach(crate::place::current));
        }
        Ok(Shim {
            dtypes: Dtypes::new(&numpy)?,
            runtime,
            shards: transport.shards(),
            resolutions: Mutex::new(Resolutions::default()),
            origins: Origins::new(&numpy)?,
            report: Mutex::new(Report::default()),
            numpy: numpy.unbind(),
            settings,
        })
    })
}

/// The shim, where an array exists and so it has started.
pub(crate) fn started(py: Python<'_>) -> &Shim {
    SHIM.get(py).expect("an array of ours exists, so the shim has started")
}

impl Shim {
    /// An attribute of the host NumPy.
    pub(crate) fn host<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.numpy.bind(py).getattr(name)
    }

    /// Waits, without the GIL, until a launch is done; then reports the floating-point events so far. Python's signal handlers
    /// run meanwhile; what one raises (KeyboardInterrupt) ends the wait, not the work.
    pub(crate) fn wait(&self, py: Python<'_>, sequence: Sequence) -> PyResult<()> {
        if !is_synced(sequence) {
            self.await_launch(py, sequence)?;
            SYNCED.fetch_max(sequence, Ordering::Relaxed);
        }
        self.warn(py)
    }

    fn await_launch(&self, py: Python<'_>, sequence: Sequence) -> PyResult<()> {
        if self.runtime.is_done(sequence) {
            return Ok(());
        }
        while !py.detach(|| self.runtime.wait(sequence, PATIENCE)).map_err(failed)? {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Waits for everything.
    pub(crate) fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let last = self.runtime.newest();
        self.await_launch(py, last)?;
        self.warn(py)?;
        self.origins.forget(last);
        Ok(())
    }

    /// Whether the program has waited for a launch already.
    pub(crate) fn is_synced(&self, sequence: Sequence) -> bool {
        is_synced(sequence)
    }

    /// Whether this shard holds the newest values of a range of a field's bytes, once all launches on the field are done.
    pub(crate) fn is_here(&self, field: &Field, bytes: &Range<usize>) -> bool {
        self.shards == 1 || field.is_everywhere(bytes)
    }

    /// Does what issuing a launch obliges to.
    pub(crate) fn settle(&self, py: Python<'_>, issued: Issued, at_once: bool) -> PyResult<()> {
        crate::rounds::launched(py, issued.sequence)?;
        if issued.pinned || at_once {
            return self.wait(py, issued.sequence);
        }
        if issued.backlog {
            let end = self.runtime.backlog_end();
            while !crate::prompt::is_in_haste() && !py.detach(|| self.runtime.wait(end, PATIENCE)).map_err(failed)? {
                py.check_signals()?;
            }
        }
        // With several shards, warnings appear where all shards see them: at waits.
        if self.shards == 1 { self.warn(py) } else { Ok(()) }
    }

    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        if self.runtime.backend().has_events() { crate::events::warn(py, self) } else { Ok(()) }
    }
}

/// The Python exception of a runtime error that is not about memory.
fn failed(error: RuntimeError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
