//! NATS: its text protocol, written 64 KiB at a time. The server's rare pings are not answered: a run is over before it minds.

use crate::Failure;
use crate::role::{Meter, STAMP, Sender, moment_of, serve_subscriber, tell_ready};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

const CHUNK: usize = 64 << 10;
const HELLO: &[u8] = b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n";

/// A connection on which the server has said who it is.
fn connect(address: &str) -> Result<(BufWriter<TcpStream>, BufReader<TcpStream>), Failure> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut input = BufReader::with_capacity(CHUNK, stream.try_clone()?);
    input.read_line(&mut String::new())?;
    let mut output = BufWriter::with_capacity(CHUNK, stream);
    output.write_all(HELLO)?;
    Ok((output, input))
}

/// Waits until the server has taken in all that was sent.
fn settle(output: &mut BufWriter<TcpStream>, input: &mut BufReader<TcpStream>) -> Result<(), Failure> {
    output.write_all(b"PING\r\n")?;
    output.flush()?;
    let mut line = String::new();
    while line != "PONG\r\n" {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Err("the server is gone".into());
        }
    }
    Ok(())
}

pub(crate) struct Publisher {
    output: BufWriter<TcpStream>,
    input: BufReader<TcpStream>,
    head: String,
    message: Vec<u8>,
}

impl Publisher {
    pub(crate) fn connect(address: &str, body: usize) -> Result<Publisher, Failure> {
        let (mut output, mut input) = connect(address)?;
        settle(&mut output, &mut input)?;
        tell_ready("");
        let message = vec![0; body.max(STAMP)];
        Ok(Publisher { output, input, head: format!("PUB bench.x {}\r\n", message.len()), message })
    }

    fn write(&mut self, moments: &[u64]) -> std::io::Result<()> {
        for moment in moments {
            self.message[..STAMP].copy_from_slice(&moment.to_le_bytes());
            self.output.write_all(self.head.as_bytes())?;
            self.output.write_all(&self.message)?;
            self.output.write_all(b"\r\n")?;
        }
        if moments.first().is_some_and(|&moment| moment != 0) { self.output.flush() } else { Ok(()) }
    }
}

impl Sender for Publisher {
    fn send(&mut self, moments: &[u64]) {
        self.write(moments).expect("the connection lives");
    }

    fn finish(&mut self) {
        settle(&mut self.output, &mut self.input).expect("the connection lives");
    }
}

pub(crate) fn subscribe(address: &str, connections: usize) -> Result<(), Failure> {
    let meter = Arc::new(Meter::default());
    for _ in 0..connections {
        let (mut output, mut input) = connect(address)?;
        output.write_all(b"SUB bench.x 1\r\n")?;
        settle(&mut output, &mut input)?;
        let counting = Arc::clone(&meter);
        std::thread::spawn(move || {
            // Kept open.
            let _output = output;
            count(input, &counting)
        });
    }
    tell_ready("");
    serve_subscriber(&meter);
    Ok(())
}

fn count(mut input: BufReader<TcpStream>, meter: &Meter) -> std::io::Result<()> {
    let (mut line, mut message) = (String::new(), Vec::new());
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let Some(length) = line.strip_prefix("MSG ").and_then(|rest| rest.split_whitespace().last()) else { continue };
        message.resize(length.parse::<usize>().unwrap_or(0) + 2, 0);
        input.read_exact(&mut message)?;
        meter.take(&[moment_of(&message)]);
    }
}
