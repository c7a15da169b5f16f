//! Mosquitto: MQTT 3.1.1 at most once, written 64 KiB at a time.

use crate::Failure;
use crate::role::{Meter, STAMP, Sender, moment_of, serve_subscriber, tell_ready};
use std::io::{BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

const CHUNK: usize = 64 << 10;
const TOPIC: &[u8] = b"\x00\x07bench/x";
const PUBLISH: u8 = 0x30;
const SUBSCRIBE: u8 = 0x82;
const ACCEPTED: u8 = 0x20;
const SUBSCRIBED: u8 = 0x90;
const PONG: u8 = 0xd0;

fn packet(kind: u8, content: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![kind];
    let mut length: usize = content.iter().map(|part| part.len()).sum();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    content.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// The next packet's kind; its content is in `content`.
fn read(input: &mut impl Read, content: &mut Vec<u8>) -> std::io::Result<u8> {
    let mut byte = [0];
    input.read_exact(&mut byte)?;
    let kind = byte[0];
    let (mut length, mut shift) = (0, 0);
    loop {
        input.read_exact(&mut byte)?;
        length |= usize::from(byte[0] & 0x7f) << shift;
        shift += 7;
        if byte[0] & 0x80 == 0 || shift > 21 {
            break;
        }
    }
    content.resize(length, 0);
    input.read_exact(content)?;
    Ok(kind)
}

fn wait_for(kind: u8, input: &mut impl Read) -> std::io::Result<()> {
    while read(input, &mut Vec::new())? != kind {}
    Ok(())
}

fn connect(address: &str) -> Result<(BufWriter<TcpStream>, BufReader<TcpStream>), Failure> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut input = BufReader::with_capacity(CHUNK, stream.try_clone()?);
    let mut output = BufWriter::with_capacity(CHUNK, stream);
    // Clean session, no keep-alive, no name.
    output.write_all(&packet(0x10, &[b"\x00\x04MQTT\x04\x02\x00\x00\x00\x00"]))?;
    output.flush()?;
    wait_for(ACCEPTED, &mut input)?;
    Ok((output, input))
}

pub(crate) struct Publisher {
    output: BufWriter<TcpStream>,
    input: BufReader<TcpStream>,
    message: Vec<u8>,
    stamp: usize,
}

impl Publisher {
    pub(crate) fn connect(address: &str, body: usize) -> Result<Publisher, Failure> {
        let (output, input) = connect(address)?;
        tell_ready("");
        let message = packet(PUBLISH, &[TOPIC, &vec![0; body.max(STAMP)]]);
        let stamp = message.len() - body.max(STAMP);
        Ok(Publisher { output, input, message, stamp })
    }

    fn write(&mut self, moments: &[u64]) -> std::io::Result<()> {
        for moment in moments {
            self.message[self.stamp..self.stamp + STAMP].copy_from_slice(&moment.to_le_bytes());
            self.output.write_all(&self.message)?;
        }
        if moments.first().is_some_and(|&moment| moment != 0) { self.output.flush() } else { Ok(()) }
    }
}

impl Sender for Publisher {
    fn send(&mut self, moments: &[u64]) {
        self.write(moments).expect("the connection lives");
    }

    fn finish(&mut self) {
        let ping = self.output.write_all(b"\xc0\x00").and_then(|()| self.output.flush());
        ping.and_then(|()| wait_for(PONG, &mut self.input)).expect("the connection lives");
    }
}

pub(crate) fn subscribe(address: &str, connections: usize) -> Result<(), Failure> {
    let meter = Arc::new(Meter::default());
    for _ in 0..connections {
        let (mut output, mut input) = connect(address)?;
        output.write_all(&packet(SUBSCRIBE, &[b"\x00\x01", TOPIC, b"\x00"]))?;
        output.flush()?;
        wait_for(SUBSCRIBED, &mut input)?;
        let counting = Arc::clone(&meter);
        std::thread::spawn(move || {
            // Kept open.
            let _output = output;
            let mut content = Vec::new();
            while let Ok(kind) = read(&mut input, &mut content) {
                if kind & 0xf0 == PUBLISH {
                    counting.take(&[moment_of(content.get(TOPIC.len()..).unwrap_or_default())]);
                }
            }
        });
    }
    tell_ready("");
    serve_subscriber(&meter);
    Ok(())
}
