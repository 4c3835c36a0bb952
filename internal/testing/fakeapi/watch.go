package fakeapi

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

// bookmarkEvery is how often a quiet watch is told the newest version.
const bookmarkEvery = time.Minute

// watching is one watch.
type watching struct {
	request
	form      form
	of        func(ref) bool
	from      uint64
	bookmarks bool
	buffer    []byte
	to        http.ResponseWriter
	flush     func()
	ends      <-chan time.Time
}

// watch answers a watch until its time is over, a fault ends it or the client goes.
func (q request) watch(w http.ResponseWriter) {
	query := q.URL.Query()
	of, err := q.selector()
	initial := query.Get("sendInitialEvents") == "true"
	if initial && err == nil && q.faults.now().NoWatchList {
		err = apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", field.ErrorList{field.Forbidden(
			field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")})
	}
	if err != nil {
		refuse(w, err)
		return
	}
	l := &watching{request: q, form: q.form(), of: in(q.namespace, of), bookmarks: query.Get("allowWatchBookmarks") == "true", to: w}
	if flusher, ok := w.(http.Flusher); ok {
		l.flush = flusher.Flush
	}
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	if seconds <= 0 {
		seconds = 1800
	}
	timer := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timer.Stop()
	l.ends = timer.C
	version, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	l.begin(version, initial)
}

// begin sends the state, if the client asked for it or named no version, and follows the changes after it.
func (l *watching) begin(version uint64, initial bool) {
	l.mutex.RLock()
	var all []ref
	all, l.from = nil, version
	if initial || version == 0 {
		all, _, _ = l.shelf.page(position{}, 0, l.of)
		l.from = l.version
	}
	_, known := l.shelf.after(l.from)
	l.mutex.RUnlock()
	if !known {
		refuse(l.to, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d", version)))
		return
	}
	l.to.Header().Set("Content-Type", "application/json")
	if l.form.protobuf {
		l.to.Header().Set("Content-Type", protobufType+";stream=watch")
	}
	l.to.WriteHeader(http.StatusOK)
	for _, r := range all {
		l.buffer = event(l.buffer, watch.Added, r, l.form)
		if !l.write(256 << 10) {
			return
		}
	}
	if initial {
		l.mark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	if l.write(0) {
		l.follow()
	}
}

// mark adds a bookmark.
func (l *watching) mark(annotations map[string]string) {
	l.buffer = bookmark(l.buffer, l.shelf.kind, l.form, metav1.ObjectMeta{ResourceVersion: fmt.Sprint(l.from), Annotations: annotations})
}

// write sends what is collected if it is more than that many bytes. It returns false if the client has gone.
func (l *watching) write(more int) bool {
	if len(l.buffer) > more {
		if _, err := l.to.Write(l.buffer); err != nil {
			return false
		}
		l.buffer = l.buffer[:0]
	}
	if more == 0 && l.flush != nil {
		l.flush()
	}
	return true
}

func (l *watching) follow() {
	marks := time.NewTicker(bookmarkEvery)
	defer marks.Stop()
	for {
		closed := l.faults.closed()
		l.mutex.RLock()
		changes, known := l.shelf.after(l.from)
		changes, next := slices.Clone(changes), l.shelf.changed
		l.mutex.RUnlock()
		if !known {
			l.expire()
			return
		}
		for _, c := range changes {
			l.show(c)
			l.from = c.version
		}
		if len(changes) > 0 && !l.write(0) {
			return
		}
		select {
		case <-next:
			continue
		case <-marks.C:
			if l.bookmarks {
				l.mark(nil)
				l.write(0)
			}
		case <-l.ends:
			return
		case <-closed:
			return
		case <-l.Context().Done():
			return
		}
	}
}

// show adds a change as the selectors see it: an object that they no longer admit is deleted.
func (l *watching) show(c change) {
	before := c.before.object != nil && l.of(c.before)
	after := c.kind != watch.Deleted && l.of(c.after)
	switch {
	case before && after:
		l.buffer = event(l.buffer, watch.Modified, c.after, l.form)
	case after:
		l.buffer = event(l.buffer, watch.Added, c.after, l.form)
	case before:
		l.buffer = event(l.buffer, watch.Deleted, c.after, l.form)
	}
}

// expire tells the client that changes after its version are forgotten.
func (l *watching) expire() {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if !l.form.protobuf {
		var text bytes.Buffer
		fmt.Fprintf(&text, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure",`+
			`"message":%q,"reason":%q,"code":%d}}`+"\n", status.Message, status.Reason, status.Code)
		l.buffer = append(l.buffer, text.Bytes()...)
		l.write(0)
		return
	}
	item, _ := status.Marshal()
	k := &kind{}
	k.Kind, k.Version = "Status", "v1"
	l.buffer = wrapped(l.buffer, watch.Error, append(envelope(k, form{protobuf: true}, "", len(item)), item...))
	l.write(0)
}
