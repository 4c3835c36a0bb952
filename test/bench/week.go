package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/fleetsim"
	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// weeks are the rows of table week. A pass of the disruption loop every 10 seconds, as in production, would take most of
// an hour on 300 nodes.
var weeks = []struct {
	nodes int
	poll  time.Duration
}{{5, 10 * time.Second}, {30, 10 * time.Second}, {300, 2 * time.Minute}}

const (
	// cpuPerNode are the millicores that pods request by day for each node of the size of a row.
	cpuPerNode = 7000
	// lifetime of spot nodes until they are interrupted, on average.
	lifetime = 14 * 24 * time.Hour
	// longestPending is how long a pod may be pending: machines start within a minute.
	longestPending = 10 * time.Minute

	weekCostLimit  = 1.10
	weekMovesLimit = 2 // per pod and day
)

// week plays a week on a virtual clock.
func (b *bench) week() error {
	row := b.table(fmt.Sprintf("%d days on the virtual clock, seed %d (cost/fresh: over the time; moved: by consolidation, "+
		"for each pod and day; bold: misses the aim)",
		b.days, b.seed), "nodes", "nodes, mean", "pods, mean", "cost, USD", "fresh, USD", "cost/fresh", "moved", "interrupted nodes",
		"pod-minutes pending", "minutes for each pod and day", "longest pending")
	for _, size := range weeks {
		if !b.only.MatchString(fmt.Sprintf("%d nodes", size.nodes)) {
			continue
		}
		pool, err := b.mixedPool()
		if err != nil {
			return err
		}
		w := newWeek(pool, size.nodes, b.seed)
		w.Poll = size.poll
		if err := w.play(b.days); err != nil {
			b.problems++
			fmt.Fprintf(b.out, "\n%d nodes: %v\n\n", size.nodes, err)
			continue
		}
		row(append([]string{strconv.Itoa(size.nodes)}, w.cells()...)...)
	}
	return nil
}

func (w *week) cells() []string {
	m, hours := w.Meter, w.Now.Sub(monday).Hours()
	podDays := m.PodHours / 24
	cost, moved := m.Cost/w.fresh, float64(w.Tally.Moved)/podDays
	return []string{
		strconv.FormatFloat(m.Nodes/hours, 'f', 1, 64), strconv.FormatFloat(m.PodHours/hours, 'f', 0, 64), usd(m.Cost), usd(w.fresh),
		verdict(ratio(cost), cost > weekCostLimit), verdict(usd(moved), moved > weekMovesLimit), strconv.Itoa(w.interrupted),
		strconv.FormatFloat(m.Pending*60, 'f', 0, 64), usd(m.Pending * 60 / podDays), m.Longest.String(),
	}
}

// mixedPool returns the pool as the store of the controller converts it.
func (b *bench) mixedPool() (model.PoolSpec, error) {
	folder := filepath.Join(b.folder, "mixed")
	if err := workload.Mixed().Write(folder); err != nil {
		return model.PoolSpec{}, err
	}
	w, err := workload.Read(folder)
	if err != nil {
		return model.PoolSpec{}, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store, err := storeOf(ctx, w, folder)
	if err != nil {
		return model.PoolSpec{}, err
	}
	pools := store.Snapshot(monday).Pools
	if len(pools) != 1 || pools[0].Blocked != nil {
		return model.PoolSpec{}, errors.New("the pool is not ready")
	}
	return *pools[0].PoolSpec, nil
}

var monday = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)

// week is a cluster whose load follows a clock: office hours on five days, a batch each night, two rollouts a day, and
// interruptions of spot nodes. The seed determines everything.
type week struct {
	*fleetsim.Cluster

	seed int
	apps []*app
	// jobs are the pods of batches with the minute at which they end.
	jobs  map[string]int
	batch int // pods each night
	// fresh is the cost of a fresh fleet at each moment, USD so far; known has its rate by the numbers of pods.
	fresh       float64
	known       map[string]float64
	interrupted int
}

// app is a Deployment.
type app struct {
	name   string
	room   workload.Room
	day    int
	office bool // fewer pods outside of office hours
	// replicas are wanted now; revision counts rollouts, old is the number of pods of the last revision.
	replicas, revision, old int
}

func newWeek(pool model.PoolSpec, nodes, seed int) *week {
	w := &week{seed: seed, jobs: map[string]int{}, known: map[string]float64{}}
	w.Cluster = fleetsim.New(uint64(seed), disruption.Options{}, monday, fleetsim.Fleet{Pools: []model.PoolSpec{pool}})
	w.MachineTime = time.Minute
	deployments := workload.Deployments(4+nodes/5, seed)
	for i, d := range deployments {
		day := max(2, cpuPerNode*nodes/len(deployments)/d.Room.CPU)
		w.apps = append(w.apps, &app{name: d.Name, room: d.Room, day: day, office: i%3 > 0})
	}
	w.batch = max(1, cpuPerNode*nodes/4/jobRoom.CPU)
	return w
}

// jobRoom is what a pod of the batch requests.
var jobRoom = workload.Room{CPU: 1000, Memory: 2048, Pods: 1}

// minutes of a day
const (
	batchAt, morning, evening = 2 * 60, 7*60 + 30, 17*60 + 30
	rollout1, rollout2        = 11 * 60, 15 * 60
	stepTime                  = 15 // of autoscaling
	steps                     = 8
)

// play advances the cluster, minute by minute where something changes.
func (w *week) play(days int) error {
	for minute := range days * 24 * 60 {
		w.work(minute)
		w.interrupt(minute)
		fresh, err := w.freshNow()
		if err != nil {
			return fmt.Errorf("%s: %w", w.Now.Format("Mon 15:04"), err)
		}
		w.fresh += fresh / 60
		if err := errors.Join(w.Advance(w.Now.Add(time.Minute)), w.Check(), w.complete()); err != nil {
			return fmt.Errorf("%s: %w", w.Now.Format("Mon 15:04"), err)
		}
		if w.Meter.Longest > longestPending {
			return fmt.Errorf("%s: a pod is pending for %s", w.Now.Format("Mon 15:04"), w.Meter.Longest)
		}
	}
	return nil
}

// work does what owners of pods do in a minute.
func (w *week) work(minute int) {
	now, day := minute%(24*60), minute/(24*60)
	for i, a := range w.apps {
		if target := a.target(now, day%7 < 5); target != a.replicas {
			a.replicas = target
			w.scale(a)
		}
		if (now == rollout1 || now == rollout2) && (i+2*day+now/rollout2)%max(1, min(4, len(w.apps))) == 0 {
			a.revision, a.old = a.revision+1, a.replicas
		}
		if a.old > 0 {
			w.roll(a)
		}
	}
	if now == batchAt {
		for i := range w.batch {
			name := fmt.Sprintf("job-%d-%d", day, i)
			w.jobs[name] = minute + 20 + int(w.draw("job", name)%40)
			w.Scale(podOf(name, "Job", jobRoom), 1)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		if minute >= w.jobs[name] {
			w.Scale(podOf(name, "Job", jobRoom), 0)
			delete(w.jobs, name)
		}
	}
}

// target returns the replicas at a minute of a day.
func (a *app) target(now int, workday bool) int {
	if !a.office {
		return a.day
	}
	night := max(1, a.day/4)
	up := min(steps, max(0, (now-morning)/stepTime+1))
	if now < morning {
		up = 0
	}
	if now >= evening {
		up = max(0, steps-1-(now-evening)/stepTime)
	}
	if !workday {
		up = 0
	}
	return night + (a.day-night)*up/steps
}

// set returns the name of the ReplicaSet of a revision.
func (a *app) set(revision int) string { return fmt.Sprintf("%s-%d", a.name, revision) }

func (a *app) controller(revision int) string { return uidOf(a.set(revision)) }

func (a *app) template(revision int) model.PodSpec {
	return podOf(a.set(revision), "ReplicaSet", a.room)
}

// scale sets the number of pods of the newest revision.
func (w *week) scale(a *app) {
	w.Scale(a.template(a.revision), max(0, a.replicas-a.old))
}

// roll is a minute of a rolling update: a quarter of the pods more at most, and a quarter not running at most.
func (w *week) roll(a *app) {
	quarter := (a.replicas + 3) / 4
	_, running := w.Count(a.controller(a.revision))
	a.old = max(0, min(a.old, a.replicas-a.replicas/4-running))
	w.Scale(a.template(a.revision-1), a.old)
	w.Scale(a.template(a.revision), min(a.replicas, a.replicas+quarter-a.old))
}

// interrupt draws each hour which spot nodes are interrupted.
func (w *week) interrupt(minute int) {
	if minute%60 != 0 {
		return
	}
	for _, name := range w.Spot() {
		if w.draw("interrupt", name, strconv.Itoa(minute))%uint64(lifetime/time.Hour) == 0 {
			w.interrupted++
			w.Interrupt(name)
		}
	}
}

// freshNow returns the cost of a fresh fleet, USD per hour.
func (w *week) freshNow() (float64, error) {
	key := strconv.Itoa(len(w.jobs))
	for _, a := range w.apps {
		young, _ := w.Count(a.controller(a.revision))
		old, _ := w.Count(a.controller(a.revision - 1))
		key += " " + strconv.Itoa(young+old)
	}
	if cost, ok := w.known[key]; ok {
		return cost, nil
	}
	nano, err := w.Fresh()
	w.known[key] = float64(nano) / model.Nano
	return w.known[key], err
}

// complete returns an error if a Deployment that is not being rolled out, or a job, has not its pods.
func (w *week) complete() error {
	for _, a := range w.apps {
		if got, _ := w.Count(a.controller(a.revision)); a.old == 0 && got != a.replicas {
			return fmt.Errorf("%s has %d pods, wants %d", a.name, got, a.replicas)
		}
	}
	for name := range w.jobs {
		if got, _ := w.Count(uidOf(name)); got != 1 {
			return fmt.Errorf("%s has %d pods, wants 1", name, got)
		}
	}
	return nil
}

// draw returns a number that depends on the seed and the words alone.
func (w *week) draw(words ...string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, words)
	return h.Sum64() >> 16
}

func uidOf(name string) string { return "uid-" + name }

func podOf(name, kind string, room workload.Room) model.PodSpec {
	return model.PodSpec{
		Namespace: "default", Labels: map[string]string{"app": name}, State: model.Pending,
		Reschedulable: true, Ready: true, EvictionCost: 1000,
		Controller: model.Owner{Kind: kind, Name: name, UID: uidOf(name)},
		Requests: slices.Clip([]quantity.Amount{
			{Name: "cpu", Value: int64(room.CPU)}, {Name: "memory", Value: int64(room.Memory) << 20},
			{Name: "pods", Value: int64(room.Pods)},
		}),
	}
}
