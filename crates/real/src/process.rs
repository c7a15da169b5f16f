//! One broker as a process: `enroute run` with a configuration of its own.

use crate::RealError;
use enroute_client::{Builder, Client};
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Longer than any start takes.
const START: Duration = Duration::from_secs(30);

/// What a broker is started with, each time the same.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// Its data directory, its configuration and what it logs are here.
    pub(crate) folder: PathBuf,
    /// Where it listens, at a port that the system chooses at each start.
    pub(crate) host: IpAddr,
    /// What it dials.
    pub(crate) peers: Vec<SocketAddr>,
    pub(crate) keep_alive_ms: Option<u64>,
    pub(crate) merge: bool,
    /// Before the program on the command line: what puts it into its namespace.
    pub(crate) within: Vec<String>,
}

/// A broker that runs; killed when dropped.
pub(crate) struct Process {
    child: Child,
    /// Kept so that the broker's output is not a broken pipe.
    _stdout: BufReader<ChildStdout>,
    /// In hexadecimal; the same in each life.
    pub(crate) id: String,
    /// Where it listens in this life.
    pub(crate) address: SocketAddr,
    /// A session that asks for its status and nothing else.
    pub(crate) monitor: Client,
}

impl Process {
    /// Starts a broker and waits until it serves clients.
    pub(crate) async fn start(program: &Path, plan: &Plan) -> Result<Process, RealError> {
        let failed = |reason: String| RealError::Start { broker: plan.name.clone(), reason };
        let (config, log) = (plan.folder.join("enroute.toml"), plan.folder.join("log"));
        std::fs::create_dir_all(&plan.folder)
            .and_then(|()| std::fs::write(&config, plan.config()))
            .map_err(|error| failed(error.to_string()))?;
        let log_file =
            File::options().create(true).append(true).open(&log).map_err(|error| failed(error.to_string()))?;
        let mut words = plan.within.iter().map(AsRef::as_ref).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg("run").arg("--config").arg(&config).env_remove("ENROUTE_BROKER");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log_file).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| failed(format!("{}: {error}", program.display())))?;
        let stdout = child.stdout.take().ok_or_else(|| failed("no standard output".into()))?;
        let mut stdout = BufReader::new(stdout);
        let greeting = timeout(START, greeting(&mut stdout)).await.ok().flatten();
        let Some((id, address)) = greeting else {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            return Err(failed(format!("it does not say where it listens; it logged:\n{said}")));
        };
        let monitor = Builder::new(multiaddress(address)).connect().await.map_err(|error| failed(error.to_string()))?;
        Ok(Process { child, _stdout: stdout, id, address, monitor })
    }

    /// Kills it without a word, and waits until it is gone.
    pub(crate) async fn kill(mut self) -> std::io::Result<()> {
        self.child.kill().await
    }
}

impl Plan {
    /// The configuration file.
    fn config(&self) -> String {
        let peers = self.peers.iter().map(|&peer| toml::Value::from(multiaddress(peer).to_string()));
        let listen = multiaddress(SocketAddr::new(self.host, 0)).to_string();
        let data = self.folder.join("data").to_string_lossy().into_owned();
        let mut table = toml::Table::new();
        table.insert("listen".into(), vec![listen].into());
        table.insert("peers".into(), peers.collect::<Vec<_>>().into());
        table.insert("mesh".into(), false.into());
        table.insert("merge".into(), self.merge.into());
        table.insert("data_dir".into(), data.into());
        if let Some(keep_alive) = self.keep_alive_ms {
            table.insert("keep_alive_ms".into(), i64::try_from(keep_alive).unwrap_or(i64::MAX).into());
        }
        table.to_string()
    }
}

/// The broker's id and its address, which are the first things that it prints.
async fn greeting(stdout: &mut BufReader<ChildStdout>) -> Option<(String, SocketAddr)> {
    let mut lines = stdout.lines();
    let mut id = None;
    while let Ok(Some(line)) = lines.next_line().await {
        match line.split_once(' ') {
            Some(("id", word)) => id = Some(word.to_owned()),
            Some(("listening", address)) => return Some((id?, socket_address(address)?)),
            _ => {}
        }
    }
    None
}

/// `/ip4/HOST/tcp/PORT`.
pub(crate) fn multiaddress(address: SocketAddr) -> enroute_client::Multiaddr {
    let text = match address.ip() {
        IpAddr::V4(host) => format!("/ip4/{host}/tcp/{}", address.port()),
        IpAddr::V6(host) => format!("/ip6/{host}/tcp/{}", address.port()),
    };
    text.parse().expect("numbers make an address")
}

/// The same backwards; whatever follows the port does not count.
fn socket_address(text: &str) -> Option<SocketAddr> {
    let mut parts = text.split('/').skip(1);
    let (_, host, _, port) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some(SocketAddr::new(host.parse().ok()?, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back() {
        let address: SocketAddr = "127.0.0.1:7440".parse().expect("an address");
        let text = multiaddress(address).to_string();
        assert_eq!(text, "/ip4/127.0.0.1/tcp/7440");
        assert_eq!(socket_address(&format!("{text}/p2p/12D3KooW")), Some(address));
        assert_eq!(socket_address("/dns4/somewhere"), None);
    }

    #[test]
    fn a_configuration_says_what_the_plan_says() {
        let plan = Plan {
            name: "b".into(),
            folder: "/tmp/b".into(),
            host: "127.0.0.1".parse().expect("an address"),
            peers: vec!["127.0.0.1:5".parse().expect("an address")],
            keep_alive_ms: Some(250),
            merge: false,
            within: Vec::new(),
        };
        let config: toml::Table = plan.config().parse().expect("TOML");
        assert_eq!(config["peers"][0].as_str(), Some("/ip4/127.0.0.1/tcp/5"));
        assert_eq!(config["listen"][0].as_str(), Some("/ip4/127.0.0.1/tcp/0"));
        assert_eq!(config["mesh"].as_bool(), Some(false));
        assert_eq!(config["keep_alive_ms"].as_integer(), Some(250));
    }
}
