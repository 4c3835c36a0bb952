package sim

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestAdmits covers the rules between pods of kube-scheduler, on three hosts: two in zone a, one in zone b.
func TestAdmits(t *testing.T) {
	zone, name := model.LabelZone, model.LabelHostname
	web := func(r relation) *pod { return &pod{app: "web", relation: r} }
	bySkew := func(key string, skew int) *pod { return web(relation{key: key, skew: skew}) }
	leaving := web(relation{})
	leaving.deleting = epoch
	inZoneA := bySkew(zone, 1)
	inZoneA.alternatives = [][]label.Requirement{{{Key: zone, Operator: label.In, Values: []string{"a"}}}}
	for what, c := range map[string]struct {
		comes *pod
		on    map[string][]*pod
		want  string // hosts that admit it
	}{
		"nothing asked":                    {web(relation{}), nil, "123"},
		"spread, no pod there":             {bySkew(zone, 1), nil, "123"},
		"spread by zone":                   {bySkew(zone, 1), map[string][]*pod{"1": {web(relation{})}}, "3"},
		"spread by zone, skew 2":           {bySkew(zone, 2), map[string][]*pod{"1": {web(relation{})}}, "123"},
		"spread by host":                   {bySkew(name, 1), map[string][]*pod{"1": {web(relation{})}}, "23"},
		"spread, the other one is leaving": {bySkew(zone, 1), map[string][]*pod{"1": {leaving}}, "123"},
		"spread over one zone only":        {inZoneA, map[string][]*pod{"1": {web(relation{})}}, "123"},
		"spread does not count others":     {bySkew(zone, 1), map[string][]*pod{"1": {{app: "db"}}}, "123"},
		"apart by host":                    {web(relation{key: name, apart: "web"}), map[string][]*pod{"1": {web(relation{})}}, "23"},
		"apart by zone":                    {web(relation{key: zone, apart: "web"}), map[string][]*pod{"1": {leaving}}, "3"},
		"kept off by others": {web(relation{}),
			map[string][]*pod{"2": {{app: "db", relation: relation{key: zone, apart: "web"}}}}, "3"},
		"near by zone":               {web(relation{key: zone, near: "db"}), map[string][]*pod{"2": {{app: "db"}}}, "12"},
		"near, no pod there":         {web(relation{key: zone, near: "db"}), nil, ""},
		"near its own, no pod there": {web(relation{key: zone, near: "web"}), nil, "123"},
		"near its own":               {web(relation{key: zone, near: "web"}), map[string][]*pod{"3": {web(relation{})}}, "3"},
	} {
		hosts := map[string]*host{}
		for host, zone := range map[string]string{"1": "a", "2": "a", "3": "b"} {
			hosts[host] = newHost(host, zone, c.on[host])
		}
		got := ""
		for _, host := range []string{"1", "2", "3"} {
			if admits(c.comes, hosts[host], hosts) {
				got += host
			}
		}
		if got != c.want {
			t.Errorf("%s: admitted on %q, want %q", what, got, c.want)
		}
	}
}

func newHost(name, zone string, pods []*pod) *host {
	return &host{labels: map[string]string{model.LabelHostname: name, model.LabelZone: zone}, pods: pods}
}

// TestDisks checks that a disk belongs to one pod at a time, and that its pod accepts only the zone of the disk.
func TestDisks(t *testing.T) {
	a := &app{name: "db", replicas: 2}
	used := map[string]bool{}
	first := a.freeDisk(used)
	used[first] = true
	second := a.freeDisk(used)
	used[second] = true
	switch {
	case first == second:
		t.Errorf("first is %v, want another value than %v", first, second)
	case first == "":
		t.Errorf(`first is ""`)
	case second == "":
		t.Errorf(`second is ""`)
	case a.freeDisk(used) != "":
		t.Errorf(`a.freeDisk(used) is %v, want ""`, a.freeDisk(used))
	}
	p := &pod{disk: first, zone: "a"}
	if p.wants(map[string]string{model.LabelZone: "b"}) || !p.wants(map[string]string{model.LabelZone: "a"}) {
		t.Error("a pod accepts a zone without its disk")
	}
}
