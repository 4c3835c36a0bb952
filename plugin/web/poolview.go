package web

import (
	"context"
	"fmt"

	"github.com/karpenter-go/karpenter/plugin/web/picture"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

func showPools(r *request) (*shown, error) {
	v := &shown{Link: "pool", Command: r.command("explain pools")}
	list, err, ready := r.reading.pools.ask(r.ctx, r.patience)
	if err != nil {
		return nil, err
	}
	if !ready {
		v.Waiting = "deciding what pools may do"
		return v, nil
	}
	v.Picture, v.Sheet = picture.Pools(list, r.width), view.PoolsSheet(list)
	v.Narrow = picture.Pools(list, narrowWidth)
	v.Extra = map[string]any{"pools": list}
	empty, stopped := 0, 0
	for i := range list {
		if list[i].Nodes == 0 {
			empty++
		}
		if list[i].Reason != "" {
			stopped++
		}
	}
	v.Lead = fmt.Sprintf("%s in the order in which they are tried for a pod: %d without nodes, %d that can launch nothing now.",
		plural(len(list), "pool"), empty, stopped)
	if len(list) == 0 {
		v.Empty = "There is no NodePool."
	}
	if name := r.query.Get("pool"); name != "" {
		return v, v.showPool(r, name)
	}
	return v, nil
}

// showPool sets the panel of a pool: what explain pool says, at first without the state at rest.
func (v *shown) showPool(r *request, name string) error {
	text, err, ready := partly(r, r.reading.poolText(name))
	if err != nil {
		return err
	}
	if !ready {
		text, _ = r.reading.poolText(name).soFar()
		v.Waiting = "computing the state at rest"
	}
	v.Detail = &detail{Title: "Pool " + name, Text: text, Link: &link{Text: "Nodes of this pool", URL: with("fleet", nil, "q", name)}}
	v.Command, v.Chosen = r.command("explain pool "+quote(name)), name
	if text == "" && ready {
		v.Detail = &detail{Title: "Pool " + name, Text: "There is no pool of this name in this reading."}
	}
	return nil
}

// poolText returns the job for the panel of a pool.
func (r *reading) poolText(name string) *job[string] {
	r.mu.Lock()
	defer r.mu.Unlock()
	j, known := r.texts[name]
	if !known {
		j = &job[string]{compute: func(_ context.Context, tell func(string)) (string, error) {
			tell(r.PoolText(name, false))
			return r.PoolText(name, true), nil
		}}
		if _, is := r.Pools()[name]; is { // names that are no pools are not kept
			r.texts[name] = j
		}
	}
	return j
}
