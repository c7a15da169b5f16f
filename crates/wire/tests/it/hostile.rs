//! Bytes that mean no good: clear errors, no panic, no memory beyond the limits, no end that does not come.

use crate::allocation::peak_of;
use crate::sample::{Sample, TRAFFIC};
use crate::strategies::sample;
use bytes::{BufMut, Bytes, BytesMut};
use enroute_broker::{
    BrokerId, CloseReason, Command, Delivery, EventFrame, EventId, LinkState, MAX_ADDRESSES, Message, RequestId,
    Version,
};
use enroute_wire::{
    ClientFrame, ControlFrame, DataFrame, Frame, FrameReader, Goodbye, Kind, MAX_CONTROL, MAX_DELIVERY_NAMES,
    MAX_DESTINATIONS, MAX_EVENT, MAX_TEXT, ServerFrame, Traffic, WireError, encode_delivery, encode_event_frame,
    encode_message,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// What decoding may take: bincode's limit, the first capacity of a list, and a hundred times the input.
fn allowance(content: &[u8]) -> usize {
    9 * MAX_CONTROL + 4096 + 100 * content.len()
}

/// Decodes wherever the frame may stand, and checks the memory it takes.
fn decode_everywhere(frame: &Frame) -> Vec<Sample> {
    let places = frame.kind.places().iter();
    let decoded = places.filter_map(|traffic| {
        let (decoded, peak) = peak_of(|| Sample::decode(*traffic, frame));
        assert!(peak <= allowance(&frame.content), "{peak} bytes for a {} of {}", frame.kind, frame.content.len());
        decoded.ok()
    });
    decoded.collect()
}

/// What can be read can be written, and is then read as the same.
fn check_stable(sample: &Sample) {
    let mut bytes = BytesMut::new();
    sample.encode(&mut bytes).unwrap_or_else(|error| panic!("read but not written: {error}"));
    assert_eq!(Sample::from_bytes(sample.traffic(), &bytes).as_ref(), Ok(sample));
}

fn any_kind() -> impl Strategy<Value = Kind> {
    (0..Kind::ALL.len()).prop_map(|index| Kind::ALL[index])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn random_content_is_harmless(kind in any_kind(), content in vec(prop_oneof![any::<u8>(), 0..4u8], 0..200)) {
        decode_everywhere(&Frame { kind, content: content.into() }).iter().for_each(check_stable);
    }

    #[test]
    fn a_random_stream_is_harmless(bytes in vec(any::<u8>(), 0..400), place in 0..4usize, step in 1..50usize) {
        let mut reader = FrameReader::new(TRAFFIC[place]);
        for chunk in bytes.chunks(step) {
            reader.push(chunk);
            // An error is final and stays the same.
            if let Err(error) = drain(&mut reader) {
                prop_assert_eq!(reader.next_frame(), Err(error));
                break;
            }
        }
        prop_assert!(reader.pending() <= bytes.len());
    }

    #[test]
    fn spoilt_frames_are_harmless(sample in sample(), spoils in vec((any::<u8>(), any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = sample.to_bytes().to_vec();
        for (how, place, value) in spoils {
            let place = place.index(bytes.len());
            match how % 5 {
                0 => bytes[place] = value,
                1 => bytes[place] ^= 1 << (value % 8),
                2 => bytes.truncate(place.max(1)),
                3 => bytes.insert(place, value),
                _ => { bytes.remove(place); }
            }
            bytes.resize(bytes.len().max(5), 0);
        }
        let mut reader = FrameReader::new(sample.traffic());
        reader.push(&bytes);
        if let Ok(frames) = drain(&mut reader) {
            frames.iter().flat_map(decode_everywhere).for_each(|sample| check_stable(&sample));
        }
        // And as the content of a frame whose length is right.
        if let Some(kind) = Kind::ALL.into_iter().find(|kind| *kind as u8 == bytes[4]) {
            let content = Bytes::copy_from_slice(&bytes[5..]);
            decode_everywhere(&Frame { kind, content }).iter().for_each(check_stable);
        }
    }
}

/// All whole frames; fails the test if there are more than can be.
fn drain(reader: &mut FrameReader) -> Result<Vec<Frame>, WireError> {
    let most = reader.pending() / 5;
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        frames.push(frame);
        assert!(frames.len() <= most, "frames out of nothing");
    }
    Ok(frames)
}

/// The beginning of a frame: length and kind.
fn prefix(kind: Kind, content: usize) -> BytesMut {
    let mut bytes = BytesMut::new();
    bytes.put_u32_le(u32::try_from(content + 1).unwrap());
    bytes.put_u8(kind as u8);
    bytes
}

#[test]
fn a_frame_is_refused_by_its_length_before_its_content_comes() {
    for kind in Kind::ALL {
        for traffic in kind.places() {
            let limit = kind.max_content();
            let mut reader = FrameReader::new(*traffic);
            reader.push(&prefix(kind, limit + 1));
            assert_eq!(reader.next_frame(), Err(WireError::TooLong { kind, found: limit + 1, limit }));

            let mut reader = FrameReader::new(*traffic);
            let (result, peak) = peak_of(|| {
                reader.push(&prefix(kind, limit));
                reader.next_frame()
            });
            assert_eq!(result.map(|frame| frame.is_some()), Ok(limit == 0));
            assert!(peak < 1024, "{peak} bytes for a promise");
        }
    }
    let mut reader = FrameReader::new(Traffic::Control);
    reader.push(&[0xff; 4]);
    assert_eq!(reader.next_frame(), Ok(None));
    reader.push(&[Kind::Message as u8]);
    assert!(matches!(reader.next_frame(), Err(WireError::TooLong { .. })));
}

#[test]
fn frames_out_of_place_or_unknown_are_refused() {
    for kind in Kind::ALL {
        for traffic in TRAFFIC {
            let mut reader = FrameReader::new(traffic);
            reader.push(&prefix(kind, 0));
            let frame = Frame { kind, content: Bytes::new() };
            if kind.places().contains(&traffic) {
                assert_eq!(reader.next_frame(), Ok(Some(frame)));
            } else {
                assert_eq!(reader.next_frame(), Err(WireError::Misplaced { kind, traffic }));
                assert_eq!(Sample::decode(traffic, &frame), Err(WireError::Misplaced { kind, traffic }));
            }
        }
    }
    let mut reader = FrameReader::new(Traffic::Control);
    reader.push(&[1, 0, 0, 0, 0xee]);
    assert_eq!(reader.next_frame(), Err(WireError::UnknownKind { kind: 0xee, traffic: Traffic::Control }));
    let mut reader = FrameReader::new(Traffic::Control);
    reader.push(&[0, 0, 0, 0]);
    assert_eq!(reader.next_frame(), Err(WireError::EmptyFrame));
}

/// A scope of as many empty filters as fit: one byte each on the wire, thirty-two in memory.
#[test]
fn the_worst_list_stays_within_the_allowance() {
    let count = MAX_CONTROL - 16;
    let mut content = vec![4, 0, 0, 0, 2, 252];
    content.extend_from_slice(&u32::try_from(count).unwrap().to_le_bytes());
    content.resize(content.len() + count, 0);
    let decoded = decode_everywhere(&Frame { kind: Kind::Message, content: content.into() });
    assert!(matches!(decoded[..], [Sample::Control(ControlFrame::Message(Message::Scope(_)))]));
}

/// The same of what letters name, and of letters: two bytes for a life, six for a part, and six for a letter.
#[test]
fn lives_and_parts_that_nobody_names_and_letters_without_an_end_stay_within_the_allowance() {
    let list = |element: &[u8], bytes: usize| {
        let count = bytes / element.len();
        let length = u32::try_from(count).unwrap().to_le_bytes();
        [&[252][..], &length, &element.repeat(count)].concat()
    };
    let most = MAX_CONTROL - 32;
    let contents = [
        ([&[5][..], &list(&[1, 0], most), &[0, 0]].concat(), true),
        ([&[5, 0][..], &list(&[1, 0, 0, 0, 1, 1], most), &[0]].concat(), true),
        ([&[5, 1, 1, 0, 0][..], &list(&[0, 0, 0, 1, 1, 1], most)].concat(), false),
    ];
    for (content, is_read) in contents {
        let decoded = decode_everywhere(&Frame { kind: Kind::Message, content: content.into() });
        assert_eq!(decoded.len(), usize::from(is_read));
    }
}

#[test]
fn lengths_that_lie_allocate_nothing_for_it() {
    let lie = |kind: Kind, start: &[u8], length: u64| {
        let mut content = start.to_vec();
        content.push(253);
        content.extend_from_slice(&length.to_le_bytes());
        assert!(decode_everywhere(&Frame { kind, content: content.into() }).is_empty());
    };
    for length in [1 << 16, 1 << 20, (8 << 20) + 65, 1 << 32, 1 << 62, u64::MAX] {
        lie(Kind::Message, &[0], length);
        lie(Kind::Message, &[3, 9], length);
        lie(Kind::Message, &[4, 0, 0, 0, 2], length);
        lie(Kind::Message, &[4, 0, 0, 0, 2, 1], length);
        (0..3).for_each(|zeros| lie(Kind::Message, &[&[5][..], &[0; 2][..zeros]].concat(), length));
        lie(Kind::Message, &[6, 0, 1], length);
        lie(Kind::Message, &[6, 1], length);
        lie(Kind::Message, &[6, 2, 1, 1, 1], length);
        lie(Kind::Message, &[6, 3, 1, 1], length);
        lie(Kind::Message, &[6, 8, 1, 1, 1], length);
        lie(Kind::Request, &[0, 1], length);
        lie(Kind::Reply, &[0, 1], length);
        lie(Kind::Goodbye, &[5], length);
    }
}

#[test]
fn an_event_for_more_destinations_than_there_are_bytes_is_refused() {
    let decode = |content: &[u8]| {
        let frame = Frame { kind: Kind::Event, content: Bytes::copy_from_slice(content) };
        let (decoded, peak) = peak_of(|| DataFrame::decode(frame));
        assert!(peak < 1024, "{peak}");
        decoded.unwrap_err()
    };
    let start = [1, 0, 0, 9, 0];
    let with = |more: &[u8]| [&start[..], more].concat();
    let kind = Kind::Event;
    assert_eq!(decode(&with(&[0x80, 0x80, 4])), WireError::Truncated { kind, what: "destinations" });
    let limit = MAX_DESTINATIONS as u64;
    assert_eq!(
        decode(&with(&[0x81, 0x80, 4])),
        WireError::TooMany { kind, what: "destinations", found: limit + 1, limit }
    );
    let malformed = |what: &str| WireError::Malformed { kind, what: what.into() };
    assert_eq!(decode(&with(&[0])), malformed("no destination"));
    assert_eq!(decode(&with(&[2, 5, 0])), malformed("a destination stands twice"));
    let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(decode(&with(&[&[2], &most[..], &[1]].concat())), malformed("a destination exceeds 64 bits"));
    assert!(matches!(decode(&with(&[1, 5, 0x81, 0x20])), WireError::TooMany { found: 4097, limit: 4096, .. }));
}

#[test]
fn left_over_bytes_are_refused() {
    let decode = |sample: Sample| {
        let mut content = sample.to_bytes().split_off(4);
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == content[0]).unwrap();
        content.put_u8(0);
        let frame = Frame { kind, content: content.split_off(1).freeze() };
        assert_eq!(Sample::decode(sample.traffic(), &frame), Err(WireError::LeftOver { kind, count: 1 }));
    };
    decode(Sample::Control(ControlFrame::Message(Message::Synced)));
    decode(Sample::Control(ControlFrame::KeepAlive));
    decode(Sample::Control(ControlFrame::Goodbye(Goodbye::Silent)));
    decode(Sample::Client(ClientFrame::StatusRequest { request: RequestId(1) }));
    decode(Sample::Client(ClientFrame::Request {
        request: RequestId(1),
        command: Command::Unsubscribe { name: "x".into() },
    }));
}

/// Encodes into a buffer that already has something in it, which must be all there is afterwards.
fn refused(encode: impl FnOnce(&mut BytesMut) -> Result<(), WireError>) -> WireError {
    let mut out = BytesMut::from(&b"before"[..]);
    let error = encode(&mut out).unwrap_err();
    assert_eq!(out.as_ref(), b"before");
    error
}

fn link_state(peer_id: &str, addresses: Vec<String>) -> Message {
    Message::LinkState(
        LinkState {
            origin: BrokerId(1),
            peer_id: peer_id.into(),
            start_nonce: 0,
            version: Version::default(),
            starting: false,
            addresses,
            links: Vec::new(),
        }
        .into(),
    )
}

#[test]
fn what_is_beyond_the_limits_is_not_written() {
    let long = "x".repeat(MAX_TEXT + 1);
    let too_long = |kind, what| WireError::TextTooLong { kind, what, found: MAX_TEXT + 1, limit: MAX_TEXT };
    let message = |message: Message| refused(|out| encode_message(&message, out));
    assert_eq!(message(link_state(&long, vec![])), too_long(Kind::Message, "peer id"));
    assert_eq!(message(link_state("", vec![long.clone()])), too_long(Kind::Message, "address"));
    let addresses = vec![String::new(); MAX_ADDRESSES + 1];
    assert!(matches!(message(link_state("", addresses)), WireError::TooMany { what: "addresses", .. }));
    let huge = Message::Offer { held: vec![held(); 40_000], last: true };
    assert!(matches!(message(huge), WireError::TooLong { kind: Kind::Message, limit: MAX_CONTROL, .. }));

    let command = Command::Unsubscribe { name: long.as_str().into() };
    let request = ClientFrame::Request { request: RequestId(1), command };
    assert_eq!(refused(|out| request.encode(out)), too_long(Kind::Request, "name"));
}

/// The same bounds hold for what comes from a peer that does not keep them: the frames are made by lengthening ones that pass.
#[test]
fn what_is_beyond_the_limits_is_not_read() {
    let longest = "x".repeat(MAX_TEXT);
    let command = Command::Unsubscribe { name: longest.as_str().into() };
    let samples = [
        (Sample::Control(ControlFrame::Message(link_state(&longest, vec![]))), "peer id"),
        (Sample::Control(ControlFrame::Message(link_state("", vec![longest.clone()]))), "address"),
        (Sample::Client(ClientFrame::Request { request: RequestId(1), command }), "name"),
    ];
    for (sample, what) in samples {
        let bytes = sample.to_bytes();
        assert_eq!(Sample::from_bytes(sample.traffic(), &bytes).as_ref(), Ok(&sample));
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == bytes[4]).unwrap();
        let mut content = bytes[5..].to_vec();
        let text = content.windows(3).position(|window| window == [251, 0, 1]).unwrap();
        content[text + 1] = 1;
        content.insert(text + 3, b'x');
        let expected = WireError::TextTooLong { kind, what, found: MAX_TEXT + 1, limit: MAX_TEXT };
        assert_eq!(Sample::decode(sample.traffic(), &Frame { kind, content: content.into() }), Err(expected));
    }
}

#[test]
fn an_event_that_is_too_long_is_not_read() {
    let id = EventId { origin: BrokerId(1), incarnation: 1, sequence: 1 };
    let event = Bytes::from(vec![0; MAX_EVENT]);
    let frame = EventFrame { hop_limit: 1, destinations: [BrokerId(2)].into_iter().collect(), id, event };
    let mut content = Sample::Data(DataFrame::Event(frame)).to_bytes().split_off(5);
    content.put_u8(0);
    let (kind, limit) = (Kind::Event, MAX_EVENT);
    let expected = Err(WireError::TooLong { kind, found: limit + 1, limit });
    assert_eq!(DataFrame::decode(Frame { kind, content: content.freeze() }), expected);
}

#[test]
fn names_in_a_delivery_are_bounded_one_by_one_and_in_all() {
    let decode = |names: usize, length: usize| {
        let mut content = BytesMut::zeroed(24);
        put_two_byte_varint(&mut content, names);
        for _ in 0..names {
            put_two_byte_varint(&mut content, length);
            content.extend_from_slice(&vec![b'x'; length]);
        }
        ServerFrame::decode(Frame { kind: Kind::Delivery, content: content.freeze() })
    };
    let kind = Kind::Delivery;
    let limit = MAX_TEXT as u64;
    assert!(decode(200, MAX_TEXT).is_ok());
    let too_long = WireError::TooMany { kind, what: "bytes of a name", found: limit + 1, limit };
    assert_eq!(decode(200, MAX_TEXT + 1), Err(too_long));

    let names = MAX_DELIVERY_NAMES / (MAX_TEXT + 2) + 1;
    let id = EventId { origin: BrokerId(1), incarnation: 1, sequence: 1 };
    let name: std::sync::Arc<str> = "x".repeat(MAX_TEXT).into();
    let mut delivery = Delivery { id, event: Bytes::new(), subscriptions: vec![name.clone(); names].into() };
    let whole = ServerFrame::Delivery(delivery.clone());
    assert!(matches!(refused(|out| whole.encode(out)), WireError::TooMany { what: "bytes of names", .. }));
    // One name fewer passes; put back into the frame by hand, it does not.
    delivery.subscriptions = vec![name; names - 1].into();
    let mut content = Sample::Server(ServerFrame::Delivery(delivery)).to_bytes()[5..].to_vec();
    assert_eq!(content[26] & 0x80, 0, "the count takes three bytes");
    assert_ne!(content[24], 0xff, "adding one carries nothing");
    content[24] += 1;
    content.extend_from_within(27..27 + MAX_TEXT + 2);
    let error = ServerFrame::decode(Frame { kind, content: content.into() }).unwrap_err();
    assert!(matches!(error, WireError::TooMany { what: "bytes of names", .. }), "{error}");
}

fn put_two_byte_varint(out: &mut BytesMut, value: usize) {
    out.put_slice(&[value as u8 & 0x7f | 0x80, u8::try_from(value >> 7).unwrap()]);
}

fn held() -> enroute_broker::Held {
    let version = Version { incarnation: u64::MAX, sequence: u64::MAX };
    enroute_broker::Held { origin: BrokerId(u64::MAX), links: version, scope: version }
}

#[test]
fn the_largest_event_passes_and_a_byte_more_does_not() {
    let id = EventId { origin: BrokerId(u64::MAX), incarnation: u64::MAX, sequence: u64::MAX };
    for (length, fits) in [(MAX_EVENT, true), (MAX_EVENT + 1, false)] {
        let event = Bytes::from(vec![1; length]);
        let destinations = (0..MAX_DESTINATIONS as u64).map(|index| BrokerId(index << 48)).collect();
        let samples = [
            Sample::Data(DataFrame::Event(EventFrame { hop_limit: 1, destinations, id, event: event.clone() })),
            Sample::Client(ClientFrame::Publish { request: RequestId(u64::MAX), event: event.clone() }),
            Sample::Server(ServerFrame::Delivery(Delivery { id, event, subscriptions: vec!["name".into(); 3].into() })),
        ];
        for sample in samples {
            if fits {
                assert!(Sample::from_bytes(sample.traffic(), &sample.to_bytes()) == Ok(sample));
            } else {
                assert!(matches!(refused(|out| sample.encode(out)), WireError::TooLong { .. }));
            }
        }
    }
}

#[test]
fn destinations_must_be_in_order_when_written() {
    let id = EventId { origin: BrokerId(1), incarnation: 1, sequence: 1 };
    let encode = |ids: Vec<u64>| {
        let destinations = ids.into_iter().map(BrokerId).collect();
        refused(|out| encode_event_frame(&EventFrame { hop_limit: 1, destinations, id, event: Bytes::new() }, out))
    };
    for ids in [vec![], vec![2, 1], vec![1, 1]] {
        assert!(matches!(encode(ids), WireError::Malformed { kind: Kind::Event, .. }));
    }
    assert!(matches!(encode((0..=MAX_DESTINATIONS as u64).collect()), WireError::TooMany { .. }));
}

#[test]
fn reasons_for_a_goodbye_are_clipped() {
    let long = "é".repeat(MAX_TEXT);
    let clash = CloseReason::IdClash { id: BrokerId(1), held_by: long.as_str().into(), refused: "b".into() };
    let clipped = CloseReason::IdClash { id: BrokerId(1), held_by: long[..MAX_TEXT].into(), refused: "b".into() };
    let violation = CloseReason::Violation(long.clone());
    let cases = [(clash, clipped), (violation, CloseReason::Violation(long[..MAX_TEXT].into()))];
    for (said, heard) in cases {
        let said = Sample::Control(ControlFrame::Goodbye(Goodbye::Closed(said)));
        let heard = Sample::Control(ControlFrame::Goodbye(Goodbye::Closed(heard)));
        assert_eq!(Sample::from_bytes(Traffic::Control, &said.to_bytes()), Ok(heard));
    }
}

/// An event that waits in a client holds its own bytes, not the buffer that it came in.
#[test]
fn a_small_event_does_not_hold_the_buffer() {
    let id = EventId { origin: BrokerId(1), incarnation: 1, sequence: 1 };
    let delivery = Delivery { id, event: Bytes::from(vec![7; 100]), subscriptions: [].into() };
    let mut stream = BytesMut::new();
    (0..300).for_each(|_| encode_delivery(&delivery, &mut stream).unwrap());
    let stream = stream.freeze();
    let mut reader = FrameReader::new(Traffic::ToClient);
    reader.push(&stream);
    let kept = reader.next_frame().unwrap().unwrap().content;
    drop(reader);
    let memory = kept.try_into_mut().expect("nobody else holds it");
    assert!(memory.capacity() < 1024, "{} bytes held", memory.capacity());
}
