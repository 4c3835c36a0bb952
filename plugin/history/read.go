package history

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// longest is the length of the longest line that is read, in bytes. The rest of a longer line is dropped.
const longest = 4 << 20

// Log is what was read.
type Log struct {
	// Lines counts all lines that are not empty, and Unread those that are no lines of a log: cut, or of another program.
	Lines, Unread int
	// Example is the first line that was not read.
	Example string
	// Events counts the lines about nodes, and Repeated those that were read more than once.
	Events, Repeated int
	// From and Until are the times of the first and the last line; zero if there is none.
	From, Until time.Time

	events []*event
	seen   map[identity]bool
}

// identity is what two lines about the same have in common.
type identity struct {
	at                           time.Time
	step                         step
	claim, node, command, detail string
	pods, nodes                  int
}

// Read adds the lines of a stream, of which several may be of one log: in any order, and with lines that others have
// too. An error is that of the stream; the lines before it are read.
func (l *Log) Read(from io.Reader) error {
	in := bufio.NewReaderSize(from, 1<<16)
	for {
		text, err := nextLine(in)
		if text = bytes.TrimSpace(text); len(text) > 0 {
			l.add(string(text))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
	}
}

// nextLine returns the next line, of which what is beyond the longest length is dropped.
func nextLine(in *bufio.Reader) ([]byte, error) {
	var text []byte
	for {
		part, err := in.ReadSlice('\n')
		if room := longest - len(text); room > 0 {
			text = append(text, part[:min(room, len(part))]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}

func (l *Log) add(text string) {
	l.Lines++
	parsed, is := parse(text)
	if !is {
		if l.Unread++; l.Unread == 1 {
			l.Example = text
		}
		return
	}
	at := parsed.when()
	if l.From.IsZero() || at.Before(l.From) {
		l.From = at
	}
	if at.After(l.Until) {
		l.Until = at
	}
	e := eventOf(parsed)
	if e == nil {
		return
	}
	e.clean()
	id := identity{at: e.at, step: e.step, claim: e.claim, node: e.node, command: e.commandID, detail: e.detail, pods: e.pods.count,
		nodes: e.nodes}
	if l.seen[id] {
		l.Repeated++
		return
	}
	if l.seen == nil {
		l.seen = map[identity]bool{}
	}
	l.seen[id] = true
	e.line = l.Lines
	l.events = append(l.events, e)
	l.Events++
}

// ordered returns the events by their time. Events of one time are in the order of the steps of a node.
func (l *Log) ordered() []*event {
	list := slices.Clone(l.events)
	slices.SortFunc(list, func(a, b *event) int {
		return cmp.Or(a.at.Compare(b.at), int(a.step)-int(b.step), a.line-b.line)
	})
	return list
}
