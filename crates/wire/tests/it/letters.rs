//! What letters that go together have in common is written once.

use bytes::BytesMut;
use enroute_broker::{
    AnnouncedFilter, BrokerId, Digest, Interest, InterestPart, Letters, Life, MAX_LETTERS, Message, Payload, Routed,
    RoutedBody,
};
use enroute_wire::{ControlFrame, Frame, Kind, WireError, encode_message};
use std::sync::Arc;

/// A broker as they are: ids are hashes, and incarnations mostly the time of the start in milliseconds.
fn life(number: u64) -> Life {
    let broker = BrokerId(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Life { broker, incarnation: 1_790_000_000_000 + number * 997 % 100_000 }
}

fn content(letters: Vec<Routed>) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    encode_message(&Message::Routed(Letters(letters)), &mut bytes).expect("within the limits");
    bytes.split_off(5).to_vec()
}

fn read(content: Vec<u8>) -> Result<Vec<Routed>, WireError> {
    match ControlFrame::decode(&Frame { kind: Kind::Message, content: content.into() })? {
        ControlFrame::Message(Message::Routed(Letters(letters))) => Ok(letters),
        other => panic!("{other:?}"),
    }
}

fn ack(source: Life, destination: Life) -> Routed {
    Routed { source, destination, passed: 3, body: RoutedBody::Ack { epoch: 4, received: 5 } }
}

fn part(bytes: usize) -> Arc<InterestPart> {
    let (added, removed) = (vec![AnnouncedFilter(vec![7; bytes].into())], Vec::new());
    Arc::new(InterestPart { version: 1, whole: true, added, removed, last: true, digest: Digest(u128::MAX) })
}

fn interest(destination: Life, scope_version: u64, part: Arc<InterestPart>) -> Routed {
    let payload = Payload::Interest(Interest { scope_version, part });
    Routed { source: life(0), destination, passed: 0, body: RoutedBody::Data { epoch: 4, sequence: 5, payload } }
}

#[test]
fn many_acknowledgements_take_little_more_than_the_names_of_who_gives_them() {
    let letters: Vec<Routed> = (1..=1_000).map(|number| ack(life(number), life(0))).collect();
    let one = content(vec![letters[0].clone()]).len();
    let all = content(letters.clone());
    assert!(all.len() < 1_000 * 22 && one > 38, "{} bytes, {one} for one of them alone", all.len());
    assert_eq!(read(all), Ok(letters));
}

#[test]
fn what_is_told_to_many_is_written_once_and_read_as_one() {
    let shared = part(5_000);
    let letters: Vec<Routed> = (1..=100).map(|number| interest(life(number), number, shared.clone())).collect();
    let bytes = content(letters.clone());
    assert!(bytes.len() < 5_000 + 100 * 25 + 100, "{}", bytes.len());
    let read = read(bytes).expect("as it was written");
    assert_eq!(read, letters);
    let parts: Vec<&Arc<InterestPart>> = (read.iter())
        .map(|letter| match &letter.body {
            RoutedBody::Data { payload: Payload::Interest(interest), .. } => &interest.part,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(parts.windows(2).all(|two| Arc::ptr_eq(two[0], two[1])));
    // The same from several brokers is not the same object, and is written once all the same.
    let equal: Vec<Routed> = (1..=100).map(|number| interest(life(number), 1, part(5_000))).collect();
    assert!(content(equal.clone()).len() < 8_000);
    assert_eq!(self::read(content(equal.clone())), Ok(equal));
}

#[test]
fn letters_that_name_what_is_missing_are_refused() {
    let lives = [5, 7].map(|broker| Life { broker: BrokerId(broker), incarnation: 1 });
    let good = content(vec![ack(lives[0], lives[1])]);
    assert_eq!(good, [5, 2, 5, 2, 7, 0, 0, 1, 0, 1, 3, 1, 4, 5]);
    for place in [8, 9] {
        let mut spoilt = good.clone();
        spoilt[place] = 2;
        let error = read(spoilt).expect_err("a third broker is not named");
        assert!(error.to_string().contains("a letter names a broker or an interest that is missing"), "{error}");
    }
    let mut spoilt = content(vec![interest(lives[0], 1, part(0))]);
    assert_eq!(spoilt.pop(), Some(0));
    spoilt.push(1);
    assert!(read(spoilt).is_err());
}

#[test]
fn too_many_letters_are_neither_written_nor_read() {
    let letters = |count: usize| vec![ack(life(1), life(2)); count];
    let mut most = content(letters(MAX_LETTERS));
    assert_eq!(read(most.clone()).map(|letters| letters.len()), Ok(MAX_LETTERS));
    let mut out = BytesMut::new();
    let error = encode_message(&Message::Routed(Letters(letters(MAX_LETTERS + 1))), &mut out).expect_err("too many");
    assert!(error.to_string().contains("1025 letters at once, at most 1024 may be"), "{error}");
    // The count, in three bytes, stands before the letters, of six bytes each.
    let count = most.len() - 6 * MAX_LETTERS - 3;
    assert_eq!(most[count..count + 3], [251, 0, 4]);
    most[count + 1] += 1;
    most.extend_from_slice(&[0, 1, 3, 1, 4, 5]);
    assert!(read(most).expect_err("too many").to_string().contains("1025 letters at once"));
}
