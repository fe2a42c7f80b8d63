//! What watches tell each other, and how it looks as bytes: a length, a kind, numbers in eight bytes, texts with their lengths.
//!
//! Promises that bytes which are no message are refused, not misread. Sends nothing.

/// How a shard's program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// At its end, or by sys.exit.
    Returned,
    /// By an exception.
    Raised,
    /// By KeyboardInterrupt.
    Interrupted,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// How far a neighbour is: number of operations, and their digest.
    Beat { count: u64, digest: u64 },
    /// Upwards: an exception ends a shard's program; what it has begun is still to be finished.
    Raised { shard: u64, how: How, text: String },
    /// Upwards: a shard's program has ended, after so many operations.
    Ended { shard: u64, how: How, count: u64, digest: u64, text: String },
    /// Upwards: a shard waits for others, for so many milliseconds, in an operation.
    Waits { shard: u64, for_ms: u64, on: Vec<u64>, text: String },
    /// To a neighbour that differs: digests of the latest operations, from number `first` on.
    Digests { first: u64, digests: Vec<u64> },
    /// The answer: the first operation that differs, as it was here.
    Differs { number: u64, shard: u64, text: String },
    /// Upwards: a reason to stop.
    Report { code: u64, text: String },
    /// Downwards: what are these shards doing?
    Ask { shards: Vec<u64> },
    /// Upwards, the answer.
    Doing { shard: u64, text: String },
    /// Downwards: end with this exit code.
    Stop { code: u64 },
    /// Downwards: all programs have ended.
    Done,
    /// Downwards: stand before the next operation once so many are done.
    Shut { until: u64 },
    /// Upwards: a shard that is to stand from there on has done so many operations, and stands or not.
    Stands { shard: u64, until: u64, done: u64, stands: bool },
    /// Downwards: raise KeyboardInterrupt.
    Raise,
    /// Downwards: stand no longer.
    Open,
}

/// Bytes of a frame's length.
const LENGTH_BYTES: usize = 4;
/// Longest frame: far more than any message needs.
const LONGEST: usize = 1 << 24;

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn kind(mut self, kind: u8) -> Writer {
        self.0.push(kind);
        self
    }

    fn number(mut self, number: u64) -> Writer {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn numbers(self, numbers: &[u64]) -> Writer {
        numbers.iter().fold(self.number(numbers.len() as u64), |writer, &number| writer.number(number))
    }

    fn text(self, text: &str) -> Writer {
        let mut writer = self.number(text.len() as u64);
        writer.0.extend(text.as_bytes());
        writer
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes(&mut self, count: usize) -> Option<&[u8]> {
        let (found, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(found)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn how(&mut self) -> Option<How> {
        Some(match self.number()? {
            0 => How::Returned,
            1 => How::Raised,
            2 => How::Interrupted,
            _ => return None,
        })
    }

    fn numbers(&mut self) -> Option<Vec<u64>> {
        let count = self.number()?;
        (0..count).map(|_| self.number()).collect()
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        Some(String::from_utf8_lossy(self.bytes(length)?).into_owned())
    }
}

impl Message {
    /// The message as a frame.
    pub(super) fn frame(&self) -> Vec<u8> {
        let writer = Writer::default();
        let body = match self {
            Message::Beat { count, digest } => writer.kind(0).number(*count).number(*digest),
            Message::Ended { shard, how, count, digest, text } => {
                writer.kind(1).number(*shard).number(*how as u64).number(*count).number(*digest).text(text)
            }
            Message::Waits { shard, for_ms, on, text } => {
                writer.kind(2).number(*shard).number(*for_ms).numbers(on).text(text)
            }
            Message::Digests { first, digests } => writer.kind(3).number(*first).numbers(digests),
            Message::Differs { number, shard, text } => writer.kind(4).number(*number).number(*shard).text(text),
            Message::Report { code, text } => writer.kind(5).number(*code).text(text),
            Message::Ask { shards } => writer.kind(6).numbers(shards),
            Message::Doing { shard, text } => writer.kind(7).number(*shard).text(text),
            Message::Stop { code } => writer.kind(8).number(*code),
            Message::Done => writer.kind(9),
            Message::Raised { shard, how, text } => writer.kind(10).number(*shard).number(*how as u64).text(text),
            Message::Shut { until } => writer.kind(11).number(*until),
            Message::Stands { shard, until, done, stands } => {
                writer.kind(12).number(*shard).number(*until).number(*done).number(u64::from(*stands))
            }
            Message::Raise => writer.kind(13),
            Message::Open => writer.kind(14),
        };
        let mut frame = (body.0.len() as u32).to_le_bytes().to_vec();
        frame.extend(body.0);
        frame
    }

    fn read(body: &[u8]) -> Option<Message> {
        let (&kind, rest) = body.split_first()?;
        let mut reader = Reader(rest);
        let message = match kind {
            0 => Message::Beat { count: reader.number()?, digest: reader.number()? },
            1 => Message::Ended {
                shard: reader.number()?,
                how: reader.how()?,
                count: reader.number()?,
                digest: reader.number()?,
                text: reader.text()?,
            },
            2 => Message::Waits {
                shard: reader.number()?,
                for_ms: reader.number()?,
                on: reader.numbers()?,
                text: reader.text()?,
            },
            3 => Message::Digests { first: reader.number()?, digests: reader.numbers()? },
            4 => Message::Differs { number: reader.number()?, shard: reader.number()?, text: reader.text()? },
            5 => Message::Report { code: reader.number()?, text: reader.text()? },
            6 => Message::Ask { shards: reader.numbers()? },
            7 => Message::Doing { shard: reader.number()?, text: reader.text()? },
            8 => Message::Stop { code: reader.number()? },
            9 => Message::Done,
            10 => Message::Raised { shard: reader.number()?, how: reader.how()?, text: reader.text()? },
            11 => Message::Shut { until: reader.number()? },
            12 => Message::Stands {
                shard: reader.number()?,
                until: reader.number()?,
                done: reader.number()?,
                stands: reader.number()? != 0,
            },
            13 => Message::Raise,
            14 => Message::Open,
            _ => return None,
        };
        reader.0.is_empty().then_some(message)
    }

    /// Takes the first whole frame off what was read: the message, none where it has not all arrived, an error where it is none.
    pub(super) fn take(read: &mut Vec<u8>) -> Result<Option<Message>, ()> {
        let Some(&length) = read.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(());
        }
        let Some(body) = read.get(LENGTH_BYTES..LENGTH_BYTES + length) else { return Ok(None) };
        let message = Message::read(body).ok_or(())?;
        read.drain(..LENGTH_BYTES + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::{How, Message};

    #[test]
    fn every_message_comes_back_as_it_was() {
        let text = || "add at app.py:7".to_owned();
        let all = [
            Message::Beat { count: 1, digest: u64::MAX },
            Message::Ended { shard: 3, how: How::Interrupted, count: 7, digest: 9, text: text() },
            Message::Waits { shard: 3, for_ms: 10, on: vec![1, 2], text: text() },
            Message::Digests { first: 4, digests: vec![5, 6] },
            Message::Differs { number: 4, shard: 1, text: String::new() },
            Message::Report { code: 1, text: text() },
            Message::Ask { shards: vec![] },
            Message::Doing { shard: 0, text: text() },
            Message::Stop { code: 130 },
            Message::Done,
            Message::Raised { shard: 2, how: How::Raised, text: text() },
            Message::Shut { until: 12 },
            Message::Stands { shard: 1, until: 12, done: 13, stands: true },
            Message::Raise,
            Message::Open,
        ];
        let mut read: Vec<u8> = all.iter().flat_map(Message::frame).collect();
        read.extend([1, 0]);
        for message in all {
            assert_eq!(Message::take(&mut read), Ok(Some(message)));
        }
        assert_eq!(Message::take(&mut read), Ok(None));
        for wrong in [vec![0, 0, 0, 0], vec![1, 0, 0, 0, 99], vec![2, 0, 0, 0, 9, 0], vec![255; 4]] {
            assert_eq!(Message::take(&mut wrong.clone()), Err(()), "{wrong:?}");
        }
    }
}
