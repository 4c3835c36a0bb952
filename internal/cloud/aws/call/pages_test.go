package call

import (
	"context"
	"errors"
	"testing"
	"time"
)

// book is a paginator with the given number of pages. fails is the page that cannot be read, counted from 1.
type book struct{ pages, at, fails int }

func (b *book) HasMorePages() bool { return b.at < b.pages }

func (b *book) NextPage(context.Context, ...func(*struct{})) (int, error) {
	if b.at++; b.at == b.fails {
		return 0, errors.New("torn out")
	}
	return b.at, nil
}

// Every page is read by its own call, up to the first that fails. A book without an end is an error.
func TestPages(t *testing.T) {
	for _, test := range []struct {
		name        string
		book        book
		read, calls int
		kind        Kind
	}{
		{"none", book{}, 0, 0, ""},
		{"three", book{pages: 3}, 3, 3, ""},
		{"the second is torn out", book{pages: 3, fails: 2}, 1, 2, Transient},
		{"no end", book{pages: 1 << 30}, MostPages, MostPages, Transient},
	} {
		calls := 0
		caller := &Caller{Timeout: time.Minute, Now: time.Now, Observe: func(Call) { calls++ }}
		read, kind := 0, Kind("")
		for page, err := range Pages(t.Context(), caller, "EC2", "DescribeSubnets", &test.book) {
			if err != nil {
				kind = KindOf(err)
			} else if read++; page != read {
				t.Errorf("%s: page %d is at position %d", test.name, page, read)
			}
		}
		switch {
		case read != test.read:
			t.Errorf("%s: read is %v, want %v", test.name, read, test.read)
		case calls != test.calls:
			t.Errorf("%s: calls is %v, want %v", test.name, calls, test.calls)
		case kind != test.kind:
			t.Errorf("%s: kind is %v, want %v", test.name, kind, test.kind)
		}
	}
}
