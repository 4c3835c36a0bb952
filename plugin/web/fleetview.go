package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/web/picture"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

func showFleet(r *request) (*shown, error) {
	mode := picture.Mode(r.query.Get("color"))
	if !slices.Contains(picture.Modes(), mode) {
		mode = picture.Fill
	}
	at := &r.reading.fleet
	if mode == picture.Why || r.query.Get("node") != "" {
		at = &r.reading.decided
	}
	fleet, err, ready := partly(r, at)
	if err != nil {
		return nil, err
	}
	v := &shown{Canvas: true, Link: "node", Command: r.command("top"), Controls: []control{colorControl(mode)}}
	if !ready {
		v.Waiting = "deciding why nodes stay"
		if fleet, ready = at.soFar(); !ready {
			v.Controls = append(v.Controls, filterControl(r, nil))
			return v, nil
		}
	}
	text := r.query.Get("q")
	v.Controls = append(v.Controls, filterControl(r, fleet))
	marked := fleet.Filter(text)
	only := picture.Only(marked, mode, r.query.Get("class"))
	kept := only.Kept()
	v.Picture, v.Sheet = picture.Fleet(only, mode, r.width), kept.Sheet()
	if r.scriptless {
		v.Narrow = picture.Fleet(only, mode, narrowWidth)
	}
	if mode != picture.Workload {
		v.Picture.Legend = picture.Legend(marked, mode) // of all classes, so that another one can be chosen
	}
	v.describe(r, kept, text)
	if found, of := fleet.Find(text, mostFound); of > 0 {
		v.Insets = append(v.Insets, foundInset(r, found, of))
	}
	if name := r.query.Get("node"); name != "" && v.Waiting == "" {
		v.showNode(r, name)
	}
	if key := r.query.Get("pod"); key != "" {
		v.showPod(r, key)
	}
	return v, nil
}

func colorControl(mode picture.Mode) control {
	c := control{Name: "color", Label: "Color", Value: string(mode), Resets: "class"}
	for _, m := range picture.Modes() {
		c.Options = append(c.Options, option{string(m), m.Title()})
	}
	return c
}

// filterControl is the field of the filter. It suggests pools and namespaces.
func filterControl(r *request, f *view.Fleet) control {
	c := control{Name: "q", Label: "Filter", Value: r.query.Get("q"), Hint: "pod, namespace, node, pool"}
	if f != nil {
		for i := range f.Nodes {
			c.Suggested = append(c.Suggested, f.Nodes[i].Pool)
		}
		c.Suggested = slices.DeleteFunc(slices.Compact(c.Suggested), func(pool string) bool { return pool == "" })
		c.Suggested = append(c.Suggested, f.Namespaces()...)
		c.Suggested = c.Suggested[:min(len(c.Suggested), mostSuggested)]
	}
	return c
}

// The limits of what a page lists of pods that a filter finds, and suggests for it.
const (
	mostFound     = 25
	mostSuggested = 200
)

// describe sets the sentences about the nodes that are shown.
func (v *shown) describe(r *request, kept *view.Fleet, text string) {
	price, _ := kept.Price()
	pods := 0
	for i := range kept.Nodes {
		pods += len(kept.Nodes[i].Pods)
	}
	v.Lead = fmt.Sprintf("%s, %s, %.2f USD an hour. A box is as large as the cpu of its node, and filled to what pods request.",
		plural(len(kept.Nodes), "node"), plural(pods, "pod"), price)
	switch {
	case r.reading.Empty():
		v.Empty = "The files have no nodes, pods or pools."
		if r.server.options.Live {
			v.Empty = "There are no nodes, pods or pools. If the cluster has some, see whether the kubeconfig names the right one."
		}
	case len(kept.Nodes) == 0:
		v.Empty = fmt.Sprintf("No node, and no pod on a node, matches the filter %q.", text)
	case strings.TrimSpace(text) != "":
		v.Lead = fmt.Sprintf("Nodes with %q in their words or in those of a pod: ", strings.TrimSpace(text)) +
			v.Lead + " Other nodes are empty boxes."
	}
}

// showNode sets the panel of a node: what explain says, and its pods.
func (v *shown) showNode(r *request, name string) {
	v.Command = r.command("explain node " + quote(name))
	d := r.reading.Node(name)
	if d == nil {
		v.Detail = &detail{Title: "Node " + name, Text: "There is no node of this name in this reading."}
		return
	}
	v.Detail = &detail{Title: "Node " + name, Text: d.Text}
	v.Chosen = name
	if len(d.Pods) > 0 {
		v.Detail.Pods = insetOf(plural(len(d.Pods), "pod"), view.PodsSheet(d.Pods), r.podURL)
	}
	v.Extra = map[string]any{"node": d}
}

// podURL is the address of the panel of a pod.
func (r *request) podURL(key string) string {
	return with("fleet", r.query, "pod", key, "node", "", "page", "")
}

// showPod sets the panel of a pod.
func (v *shown) showPod(r *request, key string) {
	v.Detail = &detail{Title: "Pod " + key, Text: "There is no pod of this name in this reading."}
	d := r.reading.Pod(key)
	if d == nil {
		return
	}
	v.Extra = map[string]any{"pod": d}
	v.Detail.Text = d.Text
	namespace, name, _ := strings.Cut(key, "/")
	v.Command = r.command("explain pod -n " + quote(namespace) + " " + quote(name))
	facts := [][2]string{{"Workload", d.Workload}, {"Requests", strings.Join(d.Requests, ", ")},
		{"Priority", fmt.Sprint(d.Priority)}, {"Labels", strings.Join(d.Labels, ", ")}, {"State", d.State}}
	if d.Node != "" {
		v.Chosen = d.Node
		v.Detail.Link = &link{Text: "Node " + d.Node, URL: with("fleet", r.query, "node", d.Node, "pod", "", "page", "")}
		keeps := "nothing: it can be evicted"
		if len(d.Keeps) > 0 {
			keeps = strings.Join(d.Keeps, "; ")
		}
		facts = append(facts, [2]string{"Keeps its node", keeps})
	}
	for _, f := range facts {
		if f[1] != "" {
			v.Detail.Facts = append(v.Detail.Facts, fact{Name: f[0], Value: f[1]})
		}
	}
}

// foundInset lists the pods that a filter finds.
func foundInset(r *request, found []view.Found, of int) *inset {
	title := plural(of, "pod") + " found"
	if len(found) < of {
		title = fmt.Sprintf("The first %d of %d pods found", len(found), of)
	}
	return insetOf(title, view.FoundSheet(found), r.podURL)
}
