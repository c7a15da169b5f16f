//! The processes of one measurement.

use crate::forward::process::Process;
use crate::forward::role::{Arrived, Command, Role, Sent};
use serde::Serialize;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// Who forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// Enroute.
    Enroute,
    /// Bare libp2p streams and relays.
    Stream,
    /// Zenoh, through routers.
    Zenoh,
    /// NATS: Debian's nats-server, with the least clients that the protocol allows.
    Nats,
    /// The same server, with NATS' own client library for Rust.
    NatsLibrary,
    /// Mosquitto: Debian's.
    Mosquitto,
}

/// What is forwarded how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Case {
    /// Brokers in the chain.
    pub brokers: usize,
    /// Bytes of an event.
    pub body: usize,
    /// Subscriptions of others, placed at the last broker.
    pub foreign: usize,
    /// Subscribers at the last broker, each of which gets every event.
    pub subscribers: usize,
}

impl System {
    /// All of them.
    pub const ALL: [System; 6] =
        [System::Enroute, System::Stream, System::Zenoh, System::Nats, System::NatsLibrary, System::Mosquitto];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            System::Enroute => "enroute",
            System::Stream => "stream",
            System::Zenoh => "zenoh",
            System::Nats => "nats",
            System::NatsLibrary => "nats-library",
            System::Mosquitto => "mosquitto",
        }
    }

    /// Whether it is measured in a case: others' subscriptions mean nothing where topics are exact, and only Zenoh has chains
    /// like ours.
    pub fn takes(self, case: &Case) -> bool {
        match self {
            System::Enroute => true,
            System::Stream => case.foreign == 0 && case.subscribers == 1,
            System::Zenoh => case.foreign == 0,
            System::Nats | System::NatsLibrary | System::Mosquitto => case.foreign == 0 && case.brokers == 1,
        }
    }
}

/// Running processes; they end with this value.
#[derive(Debug)]
pub struct Network {
    brokers: Vec<Process>,
    foreign: Option<Process>,
    subscriber: Process,
    publisher: Process,
    subscribers: u64,
}

/// The programs that play the roles.
#[derive(Clone, Debug)]
pub struct Programs {
    /// This one.
    pub own: PathBuf,
    /// The one for the peers.
    pub peers: PathBuf,
}

impl Programs {
    fn start(&self, name: &str, system: System, role: &Role) -> Result<Process, String> {
        match system {
            System::Enroute | System::Stream => Process::start(name, &self.own, &["forward-role"], role),
            System::Zenoh | System::Nats | System::NatsLibrary | System::Mosquitto => {
                Process::start(name, &self.peers, &[], role)
            }
        }
    }
}

impl Network {
    /// Starts everything and sends events until some arrive.
    ///
    /// # Errors
    /// If a process does not start, or nothing arrives.
    pub fn start(programs: &Programs, system: System, case: &Case) -> Result<Network, String> {
        let mut brokers: Vec<Process> = Vec::new();
        for number in 1..=case.brokers {
            let name = format!("broker {number}");
            let port = free_port()?;
            let upstream = brokers.last().map(|broker| broker.address.clone());
            let role = Role::Broker { system: system.name().into(), port, upstream };
            brokers.push(match system {
                System::Nats | System::NatsLibrary => start_nats(&name, port)?,
                System::Mosquitto => start_mosquitto(&name, port)?,
                System::Enroute | System::Stream | System::Zenoh => programs.start(&name, system, &role)?,
            });
        }
        let (first, last) = (brokers[0].address.clone(), brokers[case.brokers - 1].address.clone());
        let foreign = (case.foreign > 0).then(|| {
            let role = Role::Foreign { address: last.clone(), subscriptions: case.foreign };
            programs.start("foreign", system, &role)
        });
        let foreign = foreign.transpose()?;
        let name = system.name().to_owned();
        let role = Role::Subscriber { system: name.clone(), address: last, connections: case.subscribers };
        let subscriber = programs.start("subscriber", system, &role)?;
        let role = Role::Publisher { system: name, address: first, body: case.body };
        let publisher = programs.start("publisher", system, &role)?;
        let mut network = Network { brokers, foreign, subscriber, publisher, subscribers: case.subscribers as u64 };
        for _ in 0..100 {
            let (sent, arrived) = network.publish(0.2, Some(1_000.0))?;
            if arrived.events == sent.events * network.subscribers {
                return Ok(network);
            }
        }
        Err(format!("{}: what is sent does not all arrive", system.name()))
    }

    /// Publishes for some time, at a rate or as fast as it goes, and waits for what arrives.
    ///
    /// # Errors
    /// If a process has ended.
    pub fn publish(&mut self, seconds: f64, rate: Option<f64>) -> Result<(Sent, Arrived), String> {
        let sent: Sent = self.publisher.ask(&Command::Publish { seconds, rate })?;
        let arrived = self.subscriber.ask(&Command::Collect { events: sent.events * self.subscribers })?;
        Ok((sent, arrived))
    }

    /// How many blocks of memory each of Enroute's brokers has asked for so far.
    ///
    /// # Errors
    /// If a process has ended.
    pub fn allocations(&mut self) -> Result<Vec<u64>, String> {
        self.brokers.iter_mut().map(|broker| broker.ask(&Command::Allocations)).collect()
    }

    /// All processes, from publisher to subscriber.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        let publisher = std::iter::once(&self.publisher);
        publisher.chain(&self.brokers).chain(&self.foreign).chain(std::iter::once(&self.subscriber))
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| error.to_string())
}

/// Finds a program of Debian's, whose servers stand where not everybody's PATH leads.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain([Path::new("/usr/sbin").to_owned()]);
    directories.map(|directory| directory.join(program)).find(|file| file.is_file())
}

fn start_nats(name: &str, port: u16) -> Result<Process, String> {
    let program = find("nats-server").ok_or("there is no nats-server")?;
    let port_text = port.to_string();
    let mut command = std::process::Command::new(program);
    command.args(["--addr", "127.0.0.1", "--port", &port_text]);
    Process::start_server(name, &mut command, port, "Server is ready")
}

fn start_mosquitto(name: &str, port: u16) -> Result<Process, String> {
    let program = find("mosquitto").ok_or("there is no mosquitto")?;
    let mut command = std::process::Command::new(program);
    // Without a configuration it serves loopback only, and anybody there.
    command.args(["-p", &port.to_string()]);
    Process::start_server(name, &mut command, port, " running")
}
