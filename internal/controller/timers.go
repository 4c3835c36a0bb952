// Package controller holds what the controllers below it share: their timers, the field indexes of the cache, and the
// question which claims and nodes are ours.
//
//	controller            Timers, Index, Classes
//	  nodeclaim           one claim's life: launch, register, initialise, terminate, collect garbage
//	  nodepool            a pool's status: readiness, validation, counts, hash, registration health
//	  node                drain and the termination finaliser
//	  loop                provision and disrupt
//
// A controller takes everything it needs in one struct (client, provider, recorder, metrics, timers, clock), gathers,
// evaluates by functions without a context, then acts. It never sleeps to read its own write: it writes with an
// optimistic lock, and a stale read ends in a conflict, after which the event that is on its way tries again.
//
// The package must not know any of its sub-packages, nor the engine.
package controller

import (
	"fmt"
	"strings"
	"time"
)

// Timers are all waiting times of the controllers and loops. Production has the real values; tests shorten them in
// the real binary by the flag --timers. "core" is the core specification, with its section.
type Timers struct {
	// BatchIdle and BatchMax bound the provision loop's batch: it ends when no new pod came for BatchIdle, or BatchMax
	// after the first (core 3.2).
	BatchIdle time.Duration
	BatchMax  time.Duration
	// PodRetrigger is after which time pods that are still pending are planned again (core 3.2).
	PodRetrigger time.Duration
	// Nomination is for how long a node that pods were planned onto is not disrupted: the larger of 10 s and twice
	// BatchMax (core 3.1).
	Nomination time.Duration
	// WriteVisible is for how long our own write may stay unseen by the watch before a live read decides (design,
	// law 6).
	WriteVisible time.Duration
	// Catalogue is the period in which a pool's instance types and prices are read again, CatalogueRead the longest that
	// one reading may take, and CatalogueRetry the pause after one that went wrong; it doubles up to Catalogue.
	Catalogue      time.Duration
	CatalogueRead  time.Duration
	CatalogueRetry time.Duration
	// Refusal is for how long nothing is bought from a pool after the API server refused one of its claims.
	Refusal time.Duration

	// DisruptionPoll is the period of the disrupt loop (core 5.1).
	DisruptionPoll time.Duration
	// CommandRetry is the period in which a command in progress is looked at (core 5.16).
	CommandRetry time.Duration
	// CommandTimeout is the shortest time after which a command is rolled back (core 5.16).
	CommandTimeout time.Duration
	// Validation is how long a command that moves pods to save money stands before it is carried out (core 5.14).
	Validation time.Duration
	// Arrival is for how long an empty node is kept for pods that a command sent to it.
	Arrival time.Duration
	// StaticResync is the period in which the number of nodes of static pools is looked at, StaticRetry that of a pool that
	// lacks nodes it cannot have; a claim that did not live is not made again before that (core 5.17).
	StaticResync time.Duration
	StaticRetry  time.Duration

	// CordonQuiet is how long the disruption taint must have stood before claims are deleted: a binding that
	// kube-scheduler had decided before must have time to reach us.
	CordonQuiet time.Duration
	// Write bounds one write of the executor, retries included.
	Write time.Duration

	// Launch and Registration are the ages at which a claim that is not launched, or not registered, is deleted (core
	// 4.5). Launch also bounds one call to the provider.
	Launch       time.Duration
	Registration time.Duration
	// LaunchMemory is for how long the answer to a launch is remembered that its claim does not come to show (core 4.1).
	LaunchMemory time.Duration
	// HookRetry is the pause after a registration hook failed.
	HookRetry time.Duration
	// Opening is how long a node that is ready for pods waits for others of its plan to open before it, counted from the last
	// that opened. OpeningUnready is how long a node waits to be ready, OpeningMax bounds both, and OpeningPause is the longest
	// pause after a node opens.
	Opening        time.Duration
	OpeningUnready time.Duration
	OpeningMax     time.Duration
	OpeningPause   time.Duration
	// Collection is the period of garbage collection of claims and machines (core 4.6), CollectionFirst that after a start.
	Collection      time.Duration
	CollectionFirst time.Duration
	// Leak is the age under which a machine without a claim is left alone, LeakUnnoted that of one of which neither the
	// cloud nor a claim says what it was bought for: somebody who does not tell may be about to show it.
	Leak        time.Duration
	LeakUnnoted time.Duration
	// NodeGone is for how long the node of a registered claim must be gone from the cluster for the claim to be deleted.
	NodeGone time.Duration
	// RemovalWindow is the time in which machines are counted that are to be removed though neither a user nor a plan asked
	// for it. SecondLook is for how long the cloud must not find a machine whose node reports before that is told.
	RemovalWindow time.Duration
	SecondLook    time.Duration
	// Retry and RetryMax bound the exponential back-off of one object (core 4).
	Retry    time.Duration
	RetryMax time.Duration

	// Drift is the period in which a claim is asked whether it has drifted, beside events; TypeDrift is the age from which
	// on its instance type is looked for among those of the cloud (core 5.3).
	Drift     time.Duration
	TypeDrift time.Duration
	// Bound is the period in which is worked out what the fleet would cost at least.
	Bound time.Duration
	// RepairRetry is the pause after which a node is looked at again that is not repaired because too many are ill, or because
	// the API server does not show it as the cache does.
	RepairRetry time.Duration

	// Drain is the period in which a drain is looked at (core 6.2).
	Drain time.Duration
	// DrainMin is the shortest drain; it catches pods that were bound late (core 6.2).
	DrainMin time.Duration
	// Notice is the longest time from the deletion of a node to the end of its drain for which its workloads stay until
	// their places are ready; DrainReserve is how long before that end all of them are asked to leave.
	Notice       time.Duration
	DrainReserve time.Duration
	// PodStuck is how long after its deletion timestamp a terminating pod is no longer waited for (core 6.2).
	PodStuck time.Duration
	// Eviction and EvictionMax bound the exponential back-off of one pod's eviction (core 6.3).
	Eviction    time.Duration
	EvictionMax time.Duration
	// DrainQuiet is for how long a drain waits for pods before an event says so: a roll-out that goes well is refused evictions
	// too.
	DrainQuiet time.Duration
	// EvictionAnswer bounds one request to evict a pod.
	EvictionAnswer time.Duration
	// InstancePoll and InstancePollMax bound the growing pause between questions whether a machine is gone; the first
	// question is asked at once (core 4.7: 5 s).
	InstancePoll    time.Duration
	InstancePollMax time.Duration

	// Consistency is the period in which a node is compared with what its claim promises (core 4.6).
	Consistency time.Duration
	// PodEvent is the shortest time between two writes of a claim's last pod event (core 4.6).
	PodEvent time.Duration
	// Counting is the time in which a pool's node events are counted as one (core 4.6).
	Counting time.Duration
	// ClassRecheck is the period in which a pool asks whether its node class is ready, beside events.
	ClassRecheck time.Duration
}

// Production are the timers of the core specification, appendix A.
func Production() Timers {
	return Timers{
		BatchIdle:    time.Second,
		BatchMax:     10 * time.Second,
		PodRetrigger: 10 * time.Second,
		Nomination:   20 * time.Second,
		WriteVisible: 5 * time.Second,
		Catalogue:    5 * time.Minute,

		CatalogueRead:  30 * time.Second,
		CatalogueRetry: time.Second,
		Refusal:        time.Minute,

		DisruptionPoll: 10 * time.Second,
		CommandRetry:   time.Second,
		CommandTimeout: 10 * time.Minute,
		Validation:     15 * time.Second,
		Arrival:        time.Minute,
		StaticResync:   time.Minute,
		StaticRetry:    30 * time.Second,
		CordonQuiet:    time.Second,
		Write:          15 * time.Second,

		Launch:       5 * time.Minute,
		Registration: 15 * time.Minute,
		LaunchMemory: time.Hour,
		HookRetry:    200 * time.Millisecond,

		Opening:        3 * time.Second,
		OpeningUnready: 5 * time.Second,
		OpeningMax:     10 * time.Second,
		OpeningPause:   time.Second,

		Collection: 2 * time.Minute,
		Leak:       30 * time.Second,
		NodeGone:   time.Minute,

		RemovalWindow: 10 * time.Minute,
		SecondLook:    time.Minute,

		Retry:    time.Second,
		RetryMax: time.Minute,

		CollectionFirst: 10 * time.Second,
		LeakUnnoted:     5 * time.Minute,

		Drift:       5 * time.Minute,
		TypeDrift:   time.Hour,
		Bound:       5 * time.Minute,
		RepairRetry: 5 * time.Minute,

		Drain:           time.Second,
		DrainMin:        5 * time.Second,
		Notice:          150 * time.Second,
		DrainReserve:    time.Minute,
		PodStuck:        time.Minute,
		Eviction:        100 * time.Millisecond,
		EvictionMax:     10 * time.Second,
		DrainQuiet:      time.Minute,
		EvictionAnswer:  10 * time.Second,
		InstancePoll:    250 * time.Millisecond,
		InstancePollMax: 5 * time.Second,

		Consistency:  10 * time.Minute,
		PodEvent:     10 * time.Second,
		Counting:     time.Second,
		ClassRecheck: time.Minute,
	}
}

// timer is one field by the name that --timers knows.
type timer struct {
	name string
	at   *time.Duration
}

// all lists the fields in the order of their declaration.
func (t *Timers) all() []timer {
	return []timer{
		{"batch-idle", &t.BatchIdle}, {"batch-max", &t.BatchMax}, {"pod-retrigger", &t.PodRetrigger},
		{"nomination", &t.Nomination}, {"write-visible", &t.WriteVisible}, {"catalogue", &t.Catalogue},
		{"catalogue-read", &t.CatalogueRead}, {"catalogue-retry", &t.CatalogueRetry},
		{"refusal", &t.Refusal},
		{"disruption-poll", &t.DisruptionPoll}, {"command-retry", &t.CommandRetry}, {"command-timeout", &t.CommandTimeout}, {"validation", &t.Validation}, {"arrival", &t.Arrival},
		{"static-resync", &t.StaticResync}, {"static-retry", &t.StaticRetry},
		{"cordon-quiet", &t.CordonQuiet}, {"write", &t.Write},
		{"launch", &t.Launch}, {"registration", &t.Registration}, {"launch-memory", &t.LaunchMemory}, {"hook-retry", &t.HookRetry},
		{"opening", &t.Opening}, {"opening-unready", &t.OpeningUnready}, {"opening-max", &t.OpeningMax}, {"opening-pause", &t.OpeningPause},
		{"collection", &t.Collection}, {"collection-first", &t.CollectionFirst}, {"leak", &t.Leak}, {"leak-unnoted", &t.LeakUnnoted}, {"node-gone", &t.NodeGone}, {"removal-window", &t.RemovalWindow}, {"second-look", &t.SecondLook}, {"retry", &t.Retry}, {"retry-max", &t.RetryMax},
		{"drift", &t.Drift}, {"type-drift", &t.TypeDrift}, {"bound", &t.Bound}, {"repair-retry", &t.RepairRetry},
		{"drain", &t.Drain}, {"drain-min", &t.DrainMin}, {"notice", &t.Notice}, {"drain-reserve", &t.DrainReserve}, {"pod-stuck", &t.PodStuck},
		{"eviction", &t.Eviction}, {"eviction-max", &t.EvictionMax}, {"drain-quiet", &t.DrainQuiet}, {"eviction-answer", &t.EvictionAnswer},
		{"instance-poll", &t.InstancePoll}, {"instance-poll-max", &t.InstancePollMax},
		{"consistency", &t.Consistency}, {"pod-event", &t.PodEvent}, {"counting", &t.Counting}, {"class-recheck", &t.ClassRecheck},
	}
}

// Set changes the timers that text names, "name=duration,...", and leaves the others. Together with String and Type
// it makes a *Timers a flag. On an error nothing is changed.
func (t *Timers) Set(text string) error {
	changed := *t
	for item := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		if err := changed.set(item); err != nil {
			return err
		}
	}
	*t = changed
	return nil
}

func (t *Timers) set(item string) error {
	name, value, found := strings.Cut(strings.TrimSpace(item), "=")
	if !found {
		return fmt.Errorf("timer %q: want name=duration, for example drain-min=1s", item)
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return fmt.Errorf("timer %q: %q is not a positive duration such as 500ms or 2m", name, value)
	}
	var known []string
	for _, field := range t.all() {
		if field.name == name {
			*field.at = d
			return nil
		}
		known = append(known, field.name)
	}
	return fmt.Errorf("timer %q is not known; known are %s", name, strings.Join(known, ", "))
}

// String lists all timers in the form that Set reads.
func (t *Timers) String() string {
	var items []string
	for _, field := range t.all() {
		items = append(items, field.name+"="+field.at.String())
	}
	return strings.Join(items, ",")
}

// Type names the kind of value in the help of a flag.
func (t *Timers) Type() string { return "name=duration,..." }

// Parse is Production with the timers that text names changed.
func Parse(text string) (Timers, error) {
	t := Production()
	err := t.Set(text)
	return t, err
}
