package webhook

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// shares bounds what the requests of one address take of the gate, so that no address can keep others out.
type shares struct {
	lock sync.Mutex
	of   map[string]*share
}

// share is what one address has. It exists as long as the address has requests.
type share struct {
	requests int
	long     chan struct{}
	room     room
}

// enter counts a request of the address. It returns false if the address has too many.
func (s *shares) enter(address string, room int64) (*share, bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	own := s.of[address]
	if own == nil {
		own = &share{long: make(chan struct{}, longReviewsOfOne)}
		own.room.left = room / 2
		if s.of == nil {
			s.of = map[string]*share{}
		}
		s.of[address] = own
	}
	if own.requests >= requestsOfOne {
		return nil, false
	}
	own.requests++
	return own, true
}

func (s *shares) leave(address string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.of[address].requests--; s.of[address].requests == 0 {
		delete(s.of, address)
	}
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// pass is a request's place among the requests that are read concurrently. A short request needs none.
type pass struct {
	places []chan struct{} // of the address, then of all
	leave  func()
}

func (p *pass) enter(ctx context.Context) error {
	var taken []func()
	p.leave = func() {
		for _, release := range taken {
			release()
		}
	}
	for _, places := range p.places {
		release, err := take(ctx, places)
		if err != nil {
			p.leave()
			p.leave = func() {}
			return err
		}
		taken = append(taken, release)
	}
	return nil
}

// paced reads a body that must arrive at leastRate. Only time in which the client is waited for counts: the client may
// be patience behind that rate.
type paced struct {
	from io.Reader
	// until sets the time at which a read fails, and end is when the request ends in any case.
	until  func(time.Time) error
	end    time.Time
	spare  time.Duration // how long the client may still be waited for
	failed error
}

func (p *paced) Read(b []byte) (int, error) {
	if p.failed != nil {
		return 0, p.failed
	}
	if p.spare <= 0 {
		p.failed = os.ErrDeadlineExceeded
		return 0, p.failed
	}
	before := time.Now()
	last := before.Add(p.spare)
	if last.After(p.end) {
		last = p.end
	}
	_ = p.until(last) // unsupported only by the writers of tests
	n, err := p.from.Read(b)
	p.spare += time.Duration(n)*time.Second/leastRate - time.Since(before)
	p.failed = err
	if err == nil || errors.Is(err, io.EOF) { // after another error, the rest of the body is not waited for
		_ = p.until(p.end)
	}
	return n, err
}
