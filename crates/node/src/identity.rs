//! The data directory: what must outlive a restart.
//!
//! | file | what |
//! | --- | --- |
//! | `identity.key` | the ed25519 key in libp2p's protobuf encoding, readable by its owner only |
//! | `incarnation` | the number of the present life, in decimal; replaced as a whole and synced before it is used |
//! | `members` | members of the network and their addresses, one a line (`mesh/members.rs`); not needed, and replaced as a whole |
//! | `lock` | locked while a node runs |

use crate::NodeError;
use libp2p::identity::Keypair;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const KEY: &str = "identity.key";
const INCARNATION: &str = "incarnation";
const LOCK: &str = "lock";

/// More than any key or number takes.
const MAX_FILE: u64 = 4096;

/// A data directory that this process has locked; unlocked when dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Locks a data directory, creating it if need be.
    ///
    /// # Errors
    /// [`NodeError::DataDirInUse`] if another node has it, [`NodeError::DataDir`] if it cannot be used.
    pub fn open(path: impl Into<PathBuf>) -> Result<DataDir, NodeError> {
        let path = path.into();
        fs::create_dir_all(&path).map_err(|source| failed("create", &path, source))?;
        let file = path.join(LOCK);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&file);
        let lock = lock.map_err(|source| failed("open", &file, source))?;
        match lock.try_lock() {
            Ok(()) => Ok(DataDir { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(NodeError::DataDirInUse { path }),
            Err(TryLockError::Error(source)) => Err(failed("lock", &file, source)),
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The key, created at the first call.
    ///
    /// # Errors
    /// [`NodeError::DataDir`], [`NodeError::Damaged`].
    pub fn keypair(&self) -> Result<Keypair, NodeError> {
        match read_keypair(&self.path)? {
            Some(keypair) => Ok(keypair),
            None => {
                let keypair = Keypair::generate_ed25519();
                self.store_keypair(&keypair)?;
                Ok(keypair)
            }
        }
    }

    /// Stores a key where there is none yet.
    pub(crate) fn store_keypair(&self, keypair: &Keypair) -> Result<(), NodeError> {
        let bytes = keypair.to_protobuf_encoding().map_err(|e| NodeError::Damaged {
            path: self.path.join(KEY),
            reason: format!("this kind of key cannot be stored: {e}"),
        })?;
        replace(&self.path, KEY, &bytes)
    }

    /// Begins a life: an incarnation above every earlier one, stored before it is returned.
    pub(crate) fn begin_incarnation(&self) -> Result<u64, NodeError> {
        let stored = match read(&self.path.join(INCARNATION))? {
            None => 0,
            Some(bytes) => {
                std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse::<u64>().ok()).ok_or_else(|| {
                    NodeError::Damaged { path: self.path.join(INCARNATION), reason: "not a number".into() }
                })?
            }
        };
        let next = stored.checked_add(1).ok_or_else(|| NodeError::Damaged {
            path: self.path.join(INCARNATION),
            reason: "no number is above it".into(),
        })?;
        let incarnation = next.max(unix_milliseconds());
        self.store_incarnation(incarnation)?;
        Ok(incarnation)
    }

    /// Stores an incarnation taken while running.
    pub(crate) fn store_incarnation(&self, incarnation: u64) -> Result<(), NodeError> {
        replace(&self.path, INCARNATION, format!("{incarnation}\n").as_bytes())
    }
}

/// The key in a data directory, whether a node runs there or not; `None` if no node ever did.
///
/// # Errors
/// [`NodeError::DataDir`], [`NodeError::Damaged`].
pub fn read_keypair(data_dir: &Path) -> Result<Option<Keypair>, NodeError> {
    let path = data_dir.join(KEY);
    let Some(bytes) = read(&path)? else { return Ok(None) };
    warn_of_readers(&path);
    // What the decoder says of no bytes at all is of another kind of key.
    match Keypair::from_protobuf_encoding(&bytes) {
        Ok(keypair) => Ok(Some(keypair)),
        Err(_) if bytes.is_empty() => Err(NodeError::Damaged { path, reason: "it is empty".into() }),
        Err(e) => Err(NodeError::Damaged { path, reason: format!("not a key: {e}") }),
    }
}

/// Replaces a file of a data directory as a whole: a crash leaves either the old or the new one.
pub(crate) fn replace(data_dir: &Path, name: &str, content: &[u8]) -> Result<(), NodeError> {
    let new = data_dir.join(format!("{name}.new"));
    let file = data_dir.join(name);
    let write = || -> io::Result<()> {
        // What a crash may have left would keep its mode.
        match fs::remove_file(&new) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut out = options.open(&new)?;
        out.write_all(content)?;
        out.sync_all()?;
        fs::rename(&new, &file)?;
        #[cfg(unix)]
        File::open(data_dir)?.sync_all()?;
        Ok(())
    };
    write().map_err(|source| failed("write", &file, source))
}

/// Milliseconds since 1970; what a life without a data directory takes as its incarnation.
pub(crate) fn unix_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A small file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Vec<u8>>, NodeError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed("read", path, source)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes).map_err(|source| failed("read", path, source))?;
    Ok(Some(bytes))
}

#[cfg(unix)]
fn warn_of_readers(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if let Ok(metadata) = fs::metadata(path)
        && metadata.permissions().mode() & 0o077 != 0
    {
        tracing::warn!(path = %path.display(), "others than its owner may read the key: chmod 600 it");
    }
}

#[cfg(not(unix))]
fn warn_of_readers(_path: &Path) {}

fn failed(action: &'static str, path: &Path, source: io::Error) -> NodeError {
    NodeError::DataDir { action, path: path.to_owned(), source }
}
