package download

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// most is more than any archive has, in bytes: an endless answer must not fill the disk.
const most = 4 << 30

// Client fetches archives. NewClient returns one with the times below, which tests shorten.
type Client struct {
	// Mirror is the URL under which the archives are, by their paths. If it is empty, it is the place where each product
	// publishes its releases.
	Mirror string
	// answer and stall are how long the begin of an answer, connection and redirects included, and each further byte
	// may take.
	answer, stall time.Duration
	// tries is how often in a row a transfer may end without a further byte; pause is the time before the second try, and
	// grows with each.
	tries int
	pause time.Duration
	// Progress is called with a line of text, every few seconds. It may be nil.
	Progress func(string)
}

// NewClient returns a client that finds out within five seconds that there is no network.
func NewClient(mirror string, progress func(string)) *Client {
	return &Client{Mirror: mirror, answer: 5 * time.Second, stall: 15 * time.Second,
		tries: 4, pause: 500 * time.Millisecond, Progress: progress}
}

// Location is the URL of an archive.
func (c *Client) Location(a Archive) string {
	if c.Mirror != "" {
		return strings.TrimSuffix(c.Mirror, "/") + "/" + a.Path
	}
	return a.location + "/" + a.Path
}

// SumError reports an archive that is not the one that was published.
type SumError struct{ URL, Want, Got string }

func (e *SumError) Error() string {
	return fmt.Sprintf("%s has the checksum %.16s..., the source tree says %.16s...", e.URL, e.Got, e.Want)
}

// answerError reports an answer that another try does not change.
type answerError struct{ text string }

func (e *answerError) Error() string { return e.text }

// Fetch downloads an archive and writes its executables into a folder. Unless it returns nil, the folder has none of them.
// Errors to distinguish: *SumError.
func (c *Client) Fetch(ctx context.Context, a Archive, folder string) error {
	partial, err := os.CreateTemp(folder, path.Base(a.Path)+".partial-")
	if err != nil {
		return err
	}
	defer os.Remove(partial.Name())
	defer partial.Close()
	t := &transfer{client: c, archive: a, url: c.Location(a), file: partial, started: time.Now(), told: time.Now()}
	t.http = &http.Client{Transport: transport()}
	defer t.http.CloseIdleConnections()
	if err := t.all(ctx); err != nil {
		return fmt.Errorf("downloading %s: %w", a.Name, err)
	}
	if got := hex.EncodeToString(t.hash.Sum(nil)); got != a.Sum {
		return fmt.Errorf("downloading %s: %w", a.Name, &SumError{t.url, a.Sum, got})
	}
	t.tell("downloaded", time.Now())
	if err := unpack(partial, a.Members, folder); err != nil {
		return fmt.Errorf("unpacking %s: %w", filepath.Base(a.Path), err)
	}
	return nil
}

// transport has no compression: the checksum is that of the archive as it is stored.
func transport() *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true}
}

// limit ends a context unless a time is stopped or set again: it says for how long there was no answer.
func limit(ctx context.Context, wait time.Duration) (context.Context, *time.Timer, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(wait, func() { end(fmt.Errorf("no answer within %s", wait)) })
	return ctx, timer, func() { timer.Stop(); end(nil) }
}

// transfer is the download of one archive, by one connection after the other.
type transfer struct {
	client  *Client
	http    *http.Client
	archive Archive
	url     string
	file    *os.File
	hash    hash.Hash
	size    int64  // bytes so far
	total   int64  // bytes of the archive as the server says, or 0
	version string // the server's name (ETag) of what was sent so far, or empty
	reached bool   // an answer has been the archive's

	started, told time.Time
}

func (t *transfer) all(ctx context.Context) error {
	if err := t.restart(); err != nil {
		return err
	}
	for failures := 0; ; {
		before := t.size
		err := t.part(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var final *answerError
		if errors.As(err, &final) {
			return err
		}
		if failures++; t.size > before {
			failures = 0
		}
		if failures >= t.client.tries {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(max(failures, 1)) * t.client.pause):
		}
	}
}

// restart forgets what came so far.
func (t *transfer) restart() error {
	t.size, t.version = 0, ""
	t.hash = sha512.New()
	if len(t.archive.Sum) == 2*sha256.Size {
		t.hash = sha256.New()
	}
	if err := t.file.Truncate(0); err != nil {
		return &answerError{err.Error()}
	}
	_, err := t.file.Seek(0, io.SeekStart)
	return err
}

// part asks for what is missing and reads the answer to its end. A server that was never reached gets no second try: there
// is no network, and a build can begin.
func (t *transfer) part(ctx context.Context) error {
	ctx, timer, end := limit(ctx, t.client.answer)
	defer end()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return &answerError{err.Error()}
	}
	if t.size > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", t.size))
		if t.version != "" {
			request.Header.Set("If-Range", t.version)
		}
	}
	answer, err := t.http.Do(request)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%s: %w", t.url, cause)
		}
		if !t.reached {
			return &answerError{err.Error()}
		}
		return err
	}
	defer answer.Body.Close()
	if err := t.check(answer); err != nil {
		return err
	}
	timer.Reset(t.client.stall)
	if err = t.read(answer, timer); err != nil && context.Cause(ctx) != nil {
		err = fmt.Errorf("after %d bytes of %s: %w", t.size, t.url, context.Cause(ctx))
	}
	return err
}

// check decides by its header what an answer is: the archive, the rest of it, or neither.
func (t *transfer) check(answer *http.Response) error {
	switch code := answer.StatusCode; {
	case code == http.StatusPartialContent && strings.HasPrefix(answer.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", t.size)):
		return nil
	case code == http.StatusOK, code == http.StatusRequestedRangeNotSatisfiable && t.size > 0:
		if err := t.restart(); err != nil {
			return err
		}
		if code != http.StatusOK {
			return errors.New("the server does not have the rest: " + answer.Status)
		}
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return fmt.Errorf("%s answers %s", t.url, answer.Status)
	default:
		return &answerError{fmt.Sprintf("%s answers %s", t.url, answer.Status)}
	}
	if kind := answer.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/") {
		return &answerError{fmt.Sprintf("%s answers with a page (%s), which may be that of a proxy", t.url, kind)}
	}
	t.total = max(answer.ContentLength, 0)
	if tag := answer.Header.Get("ETag"); !strings.HasPrefix(tag, "W/") {
		t.version = tag
	}
	return nil
}

// read copies an answer into the file. The timer ends the connection if no byte comes for too long.
func (t *transfer) read(answer *http.Response, stalled *time.Timer) error {
	content := bufio.NewReaderSize(answer.Body, 256<<10)
	if t.size == 0 {
		if start, err := content.Peek(2); err == nil && (start[0] != 0x1f || start[1] != 0x8b) {
			return &answerError{t.url + " answers with something that is no gzip archive"}
		}
	}
	buffer := make([]byte, 256<<10)
	for {
		n, err := content.Read(buffer)
		stalled.Reset(t.client.stall)
		if err := t.add(buffer[:n]); err != nil {
			return err
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("after %d bytes of %s: %w", t.size, t.url, err)
		}
	}
}

// add keeps bytes of the archive.
func (t *transfer) add(content []byte) error {
	if len(content) == 0 {
		return nil
	}
	t.reached = true
	if _, err := t.file.Write(content); err != nil {
		return &answerError{err.Error()}
	}
	t.hash.Write(content)
	if t.size += int64(len(content)); t.size > most {
		return &answerError{fmt.Sprintf("%s is larger than %d bytes", t.url, int64(most))}
	}
	if now := time.Now(); now.Sub(t.told) >= 3*time.Second {
		t.tell("downloading", now)
	}
	return nil
}

// tell reports the progress.
func (t *transfer) tell(verb string, now time.Time) {
	t.told = now
	if t.client.Progress == nil {
		return
	}
	const mb = 1e6
	of := ""
	if t.total > 0 {
		of = fmt.Sprintf(" of %.0f", float64(t.total)/mb)
	}
	t.client.Progress(fmt.Sprintf("%s %s: %.0f%s MB, %.1f MB per second", verb, t.archive.Name, float64(t.size)/mb, of,
		float64(t.size)/mb/max(now.Sub(t.started).Seconds(), 0.001)))
}
