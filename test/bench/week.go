package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/testing/world"
	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// weeks are the rows of table week. A pass of the disruption loop after each change, as in production, would take most
// of an hour on 300 nodes.
var weeks = []struct {
	nodes int
	poll  time.Duration
}{{5, 0}, {30, 0}, {300, 2 * time.Minute}}

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
		config, err := b.mixed()
		if err != nil {
			return err
		}
		if config.Timers = controller.Production(); size.poll > 0 {
			config.Timers.DisruptionPoll, config.Timers.CommandRetry, config.Periodic = size.poll, size.poll, true
		}
		w, err := newWeek(config, size.nodes, b.seed)
		if err != nil {
			return err
		}
		err = w.play(b.days)
		w.Close()
		if err != nil {
			b.problems++
			fmt.Fprintf(b.out, "\n%d nodes: %v\n\n", size.nodes, err)
			continue
		}
		row(append([]string{strconv.Itoa(size.nodes)}, w.cells()...)...)
	}
	return nil
}

func (w *week) cells() []string {
	m, hours := w.Meter, w.Clock.Now().Sub(monday).Hours()
	podDays := m.PodHours / 24
	cost, moved := m.Cost/w.fresh, float64(w.Tally.Moved)/podDays
	return []string{
		strconv.FormatFloat(m.Nodes/hours, 'f', 1, 64), strconv.FormatFloat(m.PodHours/hours, 'f', 0, 64), usd(m.Cost), usd(w.fresh),
		verdict(ratio(cost), cost > weekCostLimit), verdict(usd(moved), moved > weekMovesLimit), strconv.Itoa(w.interrupted),
		strconv.FormatFloat(m.Pending*60, 'f', 0, 64), usd(m.Pending * 60 / podDays), m.Longest.String(),
	}
}

// mixed returns a world with the pool and the types of the workload of that name.
func (b *bench) mixed() (world.Config, error) {
	folder := filepath.Join(b.folder, "mixed")
	if err := workload.Mixed().Write(folder); err != nil {
		return world.Config{}, err
	}
	read, err := workload.Read(folder)
	if err != nil {
		return world.Config{}, err
	}
	config := world.Config{Now: monday, MachineTime: time.Minute}
	for i := range read.Pools {
		read.Pools[i].Spec.Template.Spec.NodeClassRef = world.Class
		config.Objects = append(config.Objects, &read.Pools[i])
	}
	config.Types, config.Labels, err = typesOf(folder)
	return config, err
}

var monday = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)

// week is a cluster whose load follows a clock: office hours on five days, a batch each night, two rollouts a day, and
// interruptions of spot nodes. The seed determines everything.
type week struct {
	*world.World

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

func newWeek(config world.Config, nodes, seed int) (*week, error) {
	config.Seed = uint64(seed)
	cluster, err := world.New(config)
	if err != nil {
		return nil, err
	}
	w := &week{World: cluster, seed: seed, jobs: map[string]int{}, known: map[string]float64{}}
	deployments := workload.Deployments(4+nodes/5, seed)
	for i, d := range deployments {
		day := max(2, cpuPerNode*nodes/len(deployments)/d.Room.CPU)
		w.apps = append(w.apps, &app{name: d.Name, room: d.Room, day: day, office: i%3 > 0})
	}
	w.batch = max(1, cpuPerNode*nodes/4/jobRoom.CPU)
	return w, nil
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
			return fmt.Errorf("%s: %w", w.Clock.Now().Format("Mon 15:04"), err)
		}
		w.fresh += fresh / 60
		w.Advance(time.Minute)
		if err := errors.Join(w.Check(), w.complete()); err != nil {
			return fmt.Errorf("%s: %w", w.Clock.Now().Format("Mon 15:04"), err)
		}
		if w.Meter.Longest > longestPending {
			return fmt.Errorf("%s: a pod is pending for %s", w.Clock.Now().Format("Mon 15:04"), w.Meter.Longest)
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

func (a *app) template(revision int) *corev1.Pod {
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
	cost, err := w.Fresh()
	w.known[key] = cost
	return cost, err
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

// podOf returns the template of the pods of a controller.
func podOf(name, kind string, room workload.Room) *corev1.Pod {
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(uidOf(name)), Controller: new(true)}
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(room.CPU), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(room.Memory)<<20, resource.BinarySI)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"app": name},
			OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}
