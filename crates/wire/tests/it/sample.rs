//! A frame of any stream.

use bytes::BytesMut;
use enroute_wire::{ClientFrame, ControlFrame, DataFrame, Frame, FrameReader, ServerFrame, Traffic, WireError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    Control(ControlFrame),
    Data(DataFrame),
    Client(ClientFrame),
    Server(ServerFrame),
}

pub(crate) const TRAFFIC: [Traffic; 4] = [Traffic::Control, Traffic::Data, Traffic::FromClient, Traffic::ToClient];

impl Sample {
    pub(crate) fn traffic(&self) -> Traffic {
        match self {
            Sample::Control(_) => Traffic::Control,
            Sample::Data(_) => Traffic::Data,
            Sample::Client(_) => Traffic::FromClient,
            Sample::Server(_) => Traffic::ToClient,
        }
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) -> Result<(), WireError> {
        match self {
            Sample::Control(frame) => frame.encode(out),
            Sample::Data(frame) => frame.encode(out),
            Sample::Client(frame) => frame.encode(out),
            Sample::Server(frame) => frame.encode(out),
        }
    }

    pub(crate) fn to_bytes(&self) -> BytesMut {
        let mut bytes = BytesMut::new();
        self.encode(&mut bytes).expect("the sample is within the limits");
        bytes
    }

    pub(crate) fn decode(traffic: Traffic, frame: &Frame) -> Result<Sample, WireError> {
        Ok(match traffic {
            Traffic::Control => Sample::Control(ControlFrame::decode(frame)?),
            Traffic::Data => Sample::Data(DataFrame::decode(frame.clone())?),
            Traffic::FromClient => Sample::Client(ClientFrame::decode(frame.clone())?),
            Traffic::ToClient => Sample::Server(ServerFrame::decode(frame.clone())?),
        })
    }

    /// Reads bytes that must be exactly one frame.
    pub(crate) fn from_bytes(traffic: Traffic, bytes: &[u8]) -> Result<Sample, WireError> {
        let mut reader = FrameReader::new(traffic);
        reader.push(bytes);
        let frame = reader.next_frame()?.expect("a whole frame");
        assert_eq!(reader.pending(), 0, "more than one frame");
        Sample::decode(traffic, &frame)
    }
}
