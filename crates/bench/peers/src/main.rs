//! Peers in the roles of `enroute-bench forward`: Zenoh with its own library, NATS with its own and, as Mosquitto, with the least
//! client that the protocol allows, which costs less than any library.

mod mqtt;
mod nats;
mod nats_library;
/// The same file, so that this program is built without Enroute.
#[path = "../../src/forward/role.rs"]
#[allow(dead_code)]
mod role;
mod zenoh_peer;

use role::{Role, serve_publisher};
use std::error::Error;
use std::process::ExitCode;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let role = std::env::args().nth(1).and_then(|text| serde_json::from_str(&text).ok());
    let Some(role) = role else {
        eprintln!("enroute-bench-peers: started by enroute-bench forward, with a role");
        return ExitCode::from(2);
    };
    match play(role) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("enroute-bench-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn play(role: Role) -> Result<(), Failure> {
    match role {
        Role::Broker { port, upstream, .. } => zenoh_peer::serve_router(port, upstream.as_deref()),
        Role::Publisher { system, address, body } => {
            match system.as_str() {
                "zenoh" => serve_publisher(&mut zenoh_peer::Publisher::connect(&address, body)?),
                "nats" => serve_publisher(&mut nats::Publisher::connect(&address, body)?),
                "nats-library" => serve_publisher(&mut nats_library::Publisher::connect(&address, body)?),
                _ => serve_publisher(&mut mqtt::Publisher::connect(&address, body)?),
            }
            Ok(())
        }
        Role::Subscriber { system, address, connections } => match system.as_str() {
            "zenoh" => zenoh_peer::subscribe(&address, connections),
            "nats" => nats::subscribe(&address, connections),
            "nats-library" => nats_library::subscribe(&address, connections),
            _ => mqtt::subscribe(&address, connections),
        },
        Role::Foreign { .. } => Err("a topic is exact: others' subscriptions mean nothing".into()),
    }
}
