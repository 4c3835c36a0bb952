package page

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/web"
)

// TestFollow: a live page takes up new readings by itself, and keeps what is focused, marked and in sight. When the cluster
// cannot be read, it says since when. With follow=0 it only tells of a newer reading.
func TestFollow(t *testing.T) {
	browser(t)
	var mu sync.Mutex
	shown, fails := read(t, Fleet{Nodes: 60, Pods: 6}), error(nil)
	s := openOptions(t, web.Options{Live: true, Interval: 100 * time.Millisecond, Source: "example",
		Read: func(context.Context) (*offline.Overview, error) {
			mu.Lock()
			defer mu.Unlock()
			return shown, fails
		}}, 1000, 700)
	set := func(o *offline.Overview, err error) {
		mu.Lock()
		defer mu.Unlock()
		if fails = err; o != nil {
			shown = o
		}
	}
	s.goTo("/fleet")
	eval[bool](s, `(() => { document.querySelector("#grid tbody tr:nth-child(20)").focus(); return true; })()`)
	s.do(chromedp.KeyEvent(kb.ArrowDown))
	type state struct {
		Row, Chosen string
		Scroll      float64
	}
	const now = `({Row: document.activeElement.dataset.row, Chosen: karpenterPainter.chosen, Scroll: scrollY})`
	eval[bool](s, `(() => { window.same = karpenterPainter; window.began = Number(document.body.dataset.number); return true; })()`)
	before := eval[state](s, now)
	if before.Row == "" || before.Chosen != before.Row || before.Scroll == 0 {
		t.Fatalf("before: %+v", before)
	}
	var text bytes.Buffer
	if err := (Fleet{Nodes: 60, Pods: 6}).Write(&text); err != nil {
		t.Fatal(err)
	}
	set(readText(t, bytes.ReplaceAll(text.Bytes(), []byte(`"phase":"Running"`), []byte(`"phase":"Succeeded"`))), nil)
	lead := eval[string](s, `document.querySelector(".lead").textContent`)
	s.until(`Number(document.body.dataset.number) > window.began && document.querySelector(".lead").textContent !== ` + "`" + lead + "`")
	if after := eval[state](s, now); after != before {
		t.Errorf("after a new reading %+v, before %+v", after, before)
	}
	if !eval[bool](s, "window.same === karpenterPainter") {
		t.Error("the page was loaded again")
	}
	set(nil, errors.New("the API server is away"))
	s.until(`document.getElementById("stale").textContent.startsWith("not fresh since ") &&
		document.getElementById("stale").textContent.includes("away")`)
	if rows := eval[int](s, `document.querySelectorAll("#grid tbody tr").length`); rows != 60 {
		t.Errorf("the page has %d rows while the cluster cannot be read, want those of the last reading", rows)
	}
	s.accessible("not fresh")
	set(nil, nil)
	s.until(`document.getElementById("stale").textContent === ""`)
	eval[bool](s, `(() => { document.getElementById("follow").click(); return true; })()`)
	s.until(`location.search === "?follow=0" && !document.getElementById("notice").hidden && document.querySelector("#notice a")`)
	s.quiet()
}
