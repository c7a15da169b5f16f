//! Zenoh: clients and routers over TCP, not encrypted, all else as it comes. Publishers are held up rather than their messages
//! dropped.

use crate::Failure;
use crate::role::{Command, Meter, STAMP, Sender, commands, moment_of, serve_subscriber, tell_ready};
use std::sync::Arc;
use zenoh::qos::CongestionControl;
use zenoh::{Config, Session, Wait};

const KEY: &str = "bench/x";

fn open(mode: &str, listen: Option<u16>, connect: Option<&str>) -> Result<Session, Failure> {
    let mut config = Config::default();
    config.insert_json5("mode", &format!("\"{mode}\""))?;
    config.insert_json5("scouting/multicast/enabled", "false")?;
    let listen = listen.map(|port| format!("\"tcp/127.0.0.1:{port}\"")).unwrap_or_default();
    config.insert_json5("listen/endpoints", &format!("[{listen}]"))?;
    let connect = connect.map(|address| format!("\"{address}\"")).unwrap_or_default();
    config.insert_json5("connect/endpoints", &format!("[{connect}]"))?;
    zenoh::open(config).wait()
}

pub(crate) fn serve_router(port: u16, upstream: Option<&str>) -> Result<(), Failure> {
    let _session = open("router", Some(port), upstream)?;
    tell_ready(&format!("tcp/127.0.0.1:{port}"));
    commands::<Command>().for_each(drop);
    Ok(())
}

pub(crate) struct Publisher {
    publisher: zenoh::pubsub::Publisher<'static>,
    message: Vec<u8>,
    _session: Session,
}

impl Publisher {
    pub(crate) fn connect(address: &str, body: usize) -> Result<Publisher, Failure> {
        let session = open("client", None, Some(address))?;
        let publisher = session.declare_publisher(KEY).congestion_control(CongestionControl::Block).wait()?;
        tell_ready("");
        Ok(Publisher { publisher, message: vec![0; body.max(STAMP)], _session: session })
    }
}

impl Sender for Publisher {
    fn send(&mut self, moments: &[u64]) {
        for moment in moments {
            self.message[..STAMP].copy_from_slice(&moment.to_le_bytes());
            self.publisher.put(self.message.clone()).wait().expect("the session lives");
        }
    }
}

pub(crate) fn subscribe(address: &str, connections: usize) -> Result<(), Failure> {
    let meter = Arc::new(Meter::default());
    let mut kept = Vec::new();
    for _ in 0..connections {
        let session = open("client", None, Some(address))?;
        let counting = Arc::clone(&meter);
        let subscriber = session
            .declare_subscriber(KEY)
            .callback(move |sample| counting.take(&[moment_of(&sample.payload().to_bytes())]))
            .wait()?;
        kept.push((session, subscriber));
    }
    tell_ready("");
    serve_subscriber(&meter);
    Ok(())
}
