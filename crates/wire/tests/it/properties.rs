//! Values return from their bytes as they were.

use crate::sample::Sample;
use crate::strategies::{event_frame, message, sample};
use bytes::BytesMut;
use enroute_broker::EventFrame;
use enroute_wire::{
    ControlFrame, DataFrame, FrameReader, Traffic, encode_event_frame, encode_event_header, encode_message,
    event_frame_size, message_size,
};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn frames_return(sample in sample()) {
        prop_assert_eq!(Sample::from_bytes(sample.traffic(), &sample.to_bytes()), Ok(sample));
    }

    #[test]
    fn a_message_has_the_size_it_says(message in message()) {
        let mut bytes = BytesMut::new();
        encode_message(&message, &mut bytes).unwrap();
        prop_assert_eq!(bytes.len(), message_size(&message));
        prop_assert_eq!(bytes, Sample::Control(ControlFrame::Message(message)).to_bytes());
    }

    #[test]
    fn an_event_frame_is_its_header_and_its_event(frame in event_frame()) {
        let (mut whole, mut header) = (BytesMut::new(), BytesMut::new());
        encode_event_frame(&frame, &mut whole).unwrap();
        encode_event_header(&frame, &mut header).unwrap();
        prop_assert_eq!(whole.len(), event_frame_size(&frame));
        header.extend_from_slice(&frame.event);
        prop_assert_eq!(whole, header);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// One buffer of many frames, however it is cut, gives the frames in order, and nothing is left.
    #[test]
    fn a_stream_falls_into_its_frames(frames in vec(event_frame(), 1..12), cuts in vec(1..3_000usize, 1..20)) {
        let mut stream = BytesMut::new();
        for frame in &frames {
            encode_event_frame(frame, &mut stream).unwrap();
        }
        let mut reader = FrameReader::new(Traffic::Data);
        let mut read: Vec<EventFrame> = Vec::new();
        let mut cuts = cuts.into_iter().cycle();
        while !stream.is_empty() {
            let cut = cuts.next().unwrap().min(stream.len());
            reader.push(&stream.split_to(cut));
            while let Some(frame) = reader.next_frame().unwrap() {
                let DataFrame::Event(event) = DataFrame::decode(frame.clone()).unwrap() else { panic!("not an event") };
                let (outer, inner) = (frame.content.as_ptr_range(), event.event.as_ptr_range());
                prop_assert!(event.event.is_empty() || outer.end == inner.end, "the event was copied");
                read.push(event);
            }
        }
        prop_assert_eq!(reader.pending(), 0);
        prop_assert_eq!(read, frames);
    }
}
