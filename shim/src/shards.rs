//! This process's place among the shards of the program, and what Python asks of it: `shard`, `shards`, `agree`, `collect`.
//!
//! `connect` opens the transport and starts the watch once, before anything is computed; without it the program has one shard.
//! `finish` waits for all shards' ends. `agree` and `collect`
//! are for the main thread, and every shard must call the same ones in the same order. They wait without the GIL, and look at
//! signals meanwhile. Does not decide what is agreed on (the Python side) or what the runtime exchanges.

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use legate_runtime::digest::Digest;
use legate_runtime::transport::{Alone, Chaos, Planning, Plugin, Stop, Transport, TransportError, collective};
use legate_runtime::watch::{Charge, Gate, How, Watch};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::ending::{self, Process};
use crate::{place, prompt};

/// How long a wait for the other shards' ends goes on without a look at signals.
const PATIENCE: Duration = Duration::from_millis(50);
/// The longest delay of a message under chaos.
const LONGEST_DELAY: Duration = Duration::from_millis(20);
/// How long MPI may take to end, after all programs have.
const LEAVE: Duration = Duration::from_secs(5);

/// What connects this process with the other shards.
pub(crate) struct Connection {
    plugin: Arc<Plugin>,
    /// The plugin, or chaos around it.
    transport: Arc<dyn Transport>,
    pub(crate) digest: Arc<Digest>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) watch: Watch,
    /// The line to whoever started the job.
    pub(crate) line: Option<c_int>,
}

static CONNECTION: OnceLock<Connection> = OnceLock::new();
/// The shard that this process plays, without any others.
static PLAYED: OnceLock<Arc<Planning>> = OnceLock::new();
/// Whether this process is a fork's child: a program of its own, with one shard.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The thread that runs the program, where there are other shards: only its launches are in an order that all shards share.
static PROGRAM: OnceLock<ThreadId> = OnceLock::new();

/// Is this the thread whose launches all shards issue in one order? With one shard, every thread's are.
pub(crate) fn in_program() -> bool {
    PROGRAM.get().is_none_or(|program| FORKED.load(Ordering::Relaxed) || *program == thread::current().id())
}

/// To be called before each launch: refuses what another thread would launch, or fetch from other shards, and what a prompt would
/// between two inputs; an interrupt takes effect here.
pub(crate) fn check_thread() -> PyResult<()> {
    if in_program() {
        return prompt::before_operation();
    }
    Err(PyRuntimeError::new_err(
        "an array that is spread over several shards can be used by the main thread only: hand copies of parts to threads, \
         or run with one shard",
    ))
}

/// Whether this is a forked child of a shard.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// The connection, unless there is none or it is the parent's.
pub(crate) fn connection() -> Option<&'static Connection> {
    CONNECTION.get().filter(|_| !FORKED.load(Ordering::Relaxed))
}

/// The transport to the other shards; [`Alone`] where there are none.
pub(crate) fn transport() -> Arc<dyn Transport> {
    match (connection(), PLAYED.get()) {
        (Some(connection), _) => connection.transport.clone(),
        (None, Some(played)) => played.clone(),
        (None, None) => Arc::new(Alone),
    }
}

/// The digest of what the shards do; none where there is one shard.
pub(crate) fn digest() -> Option<Arc<Digest>> {
    connection().map(|connection| connection.digest.clone())
}

/// Joins the job that this process is a rank of: opens an MPI plugin, checks that MPI sees as many ranks as whoever started them,
/// and starts the watch. Texts for the user go to stream `errors`, a goodbye to stream `line`; waits longer than `patience` seconds
/// are reported; with `chaos`, a seed, messages are delayed by chance. Raises ValueError with a text for the user where that does not work.
#[pyfunction]
#[pyo3(signature = (plugin, shard, shards, errors, line, patience, chaos))]
#[expect(clippy::too_many_arguments, reason = "what a rank is told")]
fn connect(
    py: Python<'_>,
    plugin: PathBuf,
    shard: usize,
    shards: usize,
    errors: c_int,
    line: Option<c_int>,
    patience: u64,
    chaos: Option<u64>,
) -> PyResult<()> {
    let stop = Arc::new(Stop::default());
    let refused = |why: TransportError| match why {
        TransportError::Failed(why) => PyValueError::new_err(format!("the ranks do not come together: {why}")),
        TransportError::Stopped(why) => PyRuntimeError::new_err(why),
    };
    let plugin = py.detach(|| Plugin::open(&plugin, stop.clone())).map_err(refused)?;
    if (plugin.shard(), plugin.shards()) != (shard, shards) {
        let (found, description) = (plugin.shards(), plugin.description());
        return Err(PyValueError::new_err(format!(
            "{shards} ranks were started, but MPI sees {found} here: whatever started them does not belong to {description}"
        )));
    }
    PROGRAM.get_or_init(|| thread::current().id());
    let digest = Arc::new(Digest::default());
    let host = Box::new(Process::new(errors, line));
    let gate = Arc::new(Gate::default());
    let (waits, digest_too, gate_too) = (plugin.waits().clone(), digest.clone(), gate.clone());
    let patience = Duration::from_secs(patience);
    let charge = Charge { stop, waits, digest: digest_too, gate: gate_too, host, patience };
    let watch = py.detach(|| Watch::start(&plugin, charge)).map_err(refused)?;
    let plugin = Arc::new(plugin);
    let transport: Arc<dyn Transport> = match chaos {
        Some(seed) => Arc::new(Chaos::new(plugin.clone(), seed, LONGEST_DELAY)),
        None => plugin.clone(),
    };
    CONNECTION
        .set(Connection { plugin, transport, digest, gate, watch, line })
        .map_err(|_| PyRuntimeError::new_err("the shards are connected already"))
}

/// Ends this shard's part: waits until all shards' programs have ended, `how` ("returned", "raised" or "interrupted") and with the
/// same kind of end everywhere, then leaves MPI. `text` is the traceback, told where this shard alone raised. Where the shards do
/// not end alike, the process ends in here.
#[pyfunction]
fn finish(py: Python<'_>, how: &str, text: &str) -> PyResult<()> {
    let Some(connection) = connection() else { return Ok(()) };
    let mut how = read_how(how)?;
    while !py.detach(|| connection.watch.finish(how, text, PATIENCE)) {
        if py.check_signals().is_err() {
            how = How::Interrupted;
        }
    }
    // MPI's own end may wait for the other ranks' in its own way; nothing depends on it any more.
    let (done, is_done) = channel();
    let left = std::thread::Builder::new().name("legate-leave".to_owned()).spawn(move || {
        drop(done.send(connection.plugin.close()));
    });
    if left.is_ok() {
        drop(py.detach(move || is_done.recv_timeout(LEAVE)));
    }
    py.detach(|| connection.watch.close());
    ending::say_goodbye(connection.line, how == How::Interrupted);
    Ok(())
}

/// Plays shard `shard` of `shards` in this process alone, from before its first array on: for counting what it would send.
#[pyfunction]
fn play(shard: usize, shards: usize) -> PyResult<()> {
    let played = Arc::new(Planning::new(shard, shards));
    PLAYED.set(played).map_err(|_| PyRuntimeError::new_err("this process plays a shard already"))
}

/// What a played shard has exchanged so far: exchanges, messages sent, bytes in them. None where none is played.
#[pyfunction]
fn played() -> Option<(u64, u64, u64)> {
    let played = PLAYED.get()?.played();
    Some((played.exchanges, played.messages, played.bytes))
}

/// Says that an exception ends this shard's program (`how`: "raised" or "interrupted"), which still finishes what it has begun.
#[pyfunction]
fn raised(how: &str, text: &str) -> PyResult<()> {
    if let Some(connection) = connection() {
        connection.watch.raised(read_how(how)?, text);
    }
    Ok(())
}

fn read_how(how: &str) -> PyResult<How> {
    match how {
        "returned" => Ok(How::Returned),
        "raised" => Ok(How::Raised),
        "interrupted" => Ok(How::Interrupted),
        _ => Err(PyValueError::new_err("a program returns, raises or is interrupted")),
    }
}

/// In a forked child: a program with one shard from here on.
#[pyfunction]
fn shards_forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// This shard's number.
#[pyfunction]
fn shard() -> usize {
    transport().shard()
}

/// Number of shards.
#[pyfunction]
fn shards() -> usize {
    transport().shards()
}

/// Shard 0's bytes, on every shard. What the others give counts for nothing. An interrupt may take effect before it, unless
/// `gated` is false.
#[pyfunction]
#[pyo3(signature = (payload=None, gated=true))]
fn agree<'py>(py: Python<'py>, payload: Option<&Bound<'py, PyBytes>>, gated: bool) -> PyResult<Bound<'py, PyBytes>> {
    if gated {
        prompt::pass_gate()?;
    }
    let transport = transport();
    if transport.shard() == 0 {
        let payload = payload.ok_or_else(|| PyTypeError::new_err("shard 0 must give the bytes to agree on"))?;
        if transport.shards() == 1 {
            return Ok(payload.clone());
        }
    }
    let own = if transport.shard() == 0 { payload.map(|bytes| bytes.as_bytes().to_vec()) } else { None };
    let agreed = together(py, "agree", |look| collective::broadcast(&*transport, own.unwrap_or_default(), look))?;
    Ok(PyBytes::new(py, &agreed))
}

/// Every shard's bytes, in the order of the shards, on every shard. An interrupt may take effect before it.
#[pyfunction]
fn collect<'py>(py: Python<'py>, payload: &Bound<'py, PyBytes>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    prompt::pass_gate()?;
    let transport = transport();
    if transport.shards() == 1 {
        return Ok(vec![payload.clone()]);
    }
    let own = payload.as_bytes().to_vec();
    let rows = together(py, "collect", |look| collective::gather(&*transport, &own, look))?;
    Ok(rows.iter().map(|row| PyBytes::new(py, row)).collect())
}

/// Runs a collective without the GIL. Signal handlers run while it waits; what one raises is raised after it, so that the shards
/// stay in step.
fn together<R: Send>(
    py: Python<'_>,
    name: &str,
    collective: impl FnOnce(&mut dyn FnMut()) -> Result<R, TransportError> + Send,
) -> PyResult<R> {
    if let Some(digest) = digest() {
        digest.note(name.into(), &[], 0, place::current(py));
    }
    let mut raised = None;
    let outcome = py.detach(|| {
        collective(&mut || {
            if raised.is_none() {
                raised = Python::attach(|py| py.check_signals()).err();
            }
        })
    });
    match raised {
        Some(raised) => Err(raised),
        None => outcome.map_err(failed),
    }
}

fn failed(error: TransportError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Puts what Python asks for into the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for function in [
        wrap_pyfunction!(connect, module)?,
        wrap_pyfunction!(finish, module)?,
        wrap_pyfunction!(raised, module)?,
        wrap_pyfunction!(play, module)?,
        wrap_pyfunction!(played, module)?,
        wrap_pyfunction!(shards_forked, module)?,
        wrap_pyfunction!(shard, module)?,
        wrap_pyfunction!(shards, module)?,
        wrap_pyfunction!(agree, module)?,
        wrap_pyfunction!(collect, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
