// Package controller holds what the controllers below it share: their timers, the field indexes of the cache, and the
// test which claims and nodes this controller manages.
//
//	controller            Timers, Index, Classes
//	  nodeclaim           lifecycle of one claim: launch, registration, initialization, termination, garbage collection
//	  nodepool            a pool's status: readiness, validation, counts, hash, registration health
//	  node                drain and the termination finalizer
//	  loop                provisioning and disruption
//
// A controller receives all its dependencies in one struct (client, provider, recorder, metrics, timers, clock). It
// gathers its input, evaluates it by functions without a context, and then acts. It never sleeps to read its own
// write. It writes with an optimistic lock. A stale read ends in a conflict, and the pending watch event starts the
// next attempt.
//
// The package must not depend on any of its sub-packages, nor on the engine.
package controller

import (
	"fmt"
	"strings"
	"time"
)

// Timers holds all waiting times of the controllers and loops. Production returns the production values. Tests
// shorten them in the real binary with the flag --timers.
type Timers struct {
	// BatchIdle and BatchMax bound a batch of the provision loop. It ends when no new pod has been created for
	// BatchIdle, or BatchMax after the first pod. See BATCH_IDLE_DURATION and BATCH_MAX_DURATION in
	// https://karpenter.sh/docs/reference/settings/.
	BatchIdle time.Duration
	BatchMax  time.Duration
	// PodRetrigger is the time after which pods that are still pending are planned again.
	PodRetrigger time.Duration
	// Nomination is how long a node is not disrupted after pods were planned onto it: the larger of 10 s and twice
	// BatchMax.
	Nomination time.Duration
	// WriteVisible is how long the controller's own write may be missing from the watch before a live read decides.
	// See docs/architecture.md, section Decisions.
	WriteVisible time.Duration
	// Catalog is the period in which a pool's instance types and prices are read again. CatalogRead bounds one
	// read. CatalogRetry is the pause after a failed read. It doubles up to Catalog.
	Catalog      time.Duration
	CatalogRead  time.Duration
	CatalogRetry time.Duration

	// DisruptionPoll is the period of the disrupt loop.
	DisruptionPoll time.Duration
	// CommandRetry is the period in which a command in progress is examined.
	CommandRetry time.Duration
	// CommandTimeout is the shortest time after which a command is rolled back.
	CommandTimeout time.Duration
	// Validation is how long a command that moves pods to reduce cost must stay valid before it is executed.
	Validation time.Duration
	// Arrival is how long an empty node is kept for pods that a command planned onto it.
	Arrival time.Duration
	// StaticResync is the period in which the number of nodes of static pools is compared with the desired number.
	// StaticRetry is the period for a pool with missing nodes that it cannot get.
	StaticResync time.Duration
	StaticRetry  time.Duration

	// CordonQuiet is how long the disruption taint must be set before claims are deleted: the watch event of a
	// binding that kube-scheduler decided before the taint must have time to arrive.
	CordonQuiet time.Duration
	// Write bounds one write of the executor, including retries.
	Write time.Duration

	// Launch and Registration are the ages at which a claim that is not launched, or not registered, is deleted.
	// Launch also bounds one call to the provider.
	Launch       time.Duration
	Registration time.Duration
	// LaunchMemory is how long the result of a launch is kept in memory when it cannot be written to its claim.
	LaunchMemory time.Duration
	// HookRetry is the pause after a failed registration hook.
	HookRetry time.Duration
	// Collection is the period of garbage collection of claims and machines. CollectionFirst is the delay of the
	// first run after a start.
	Collection      time.Duration
	CollectionFirst time.Duration
	// Leak is the age below which a machine without a claim is kept. LeakUnnoted is that age for a machine for which
	// neither the cloud nor a claim records why it was launched: the record may still become visible.
	Leak        time.Duration
	LeakUnnoted time.Duration
	// NodeGone is how long the node of a registered claim must be missing from the cluster before the claim is
	// deleted.
	NodeGone time.Duration
	// RemovalWindow is the time within which at most a fifth of the machines are removed that neither a user nor a plan
	// requested to remove. SecondLook is how long the cloud must report a machine as missing while its node reports, before
	// this is reported.
	RemovalWindow time.Duration
	SecondLook    time.Duration
	// Retry and RetryMax bound the exponential backoff of one object.
	Retry    time.Duration
	RetryMax time.Duration

	// Drift is the period in which a claim is checked for drift, in addition to events. TypeDrift is the age from
	// which on its instance type must be among the instance types of the cloud.
	Drift     time.Duration
	TypeDrift time.Duration
	// Bound is the period in which the lower bound of the cost of the cluster is computed.
	Bound time.Duration
	// RepairRetry is the pause before a node is examined again that is not repaired, because too many nodes are
	// unhealthy or because the API server and the cache disagree about the node.
	RepairRetry time.Duration

	// Drain is the period in which a drain is examined.
	Drain time.Duration
	// DrainMin is the shortest duration of a drain. It covers pods that were bound late.
	DrainMin time.Duration
	// Notice is the longest time from the deletion of a node to the end of its drain for which its workloads keep
	// running until their replacements are ready. DrainReserve is the time before that end at which all of them are
	// evicted.
	Notice       time.Duration
	DrainReserve time.Duration
	// PodStuck is the time after its deletion timestamp for which a drain waits for a terminating pod.
	PodStuck time.Duration
	// Eviction and EvictionMax bound the exponential backoff of one pod's eviction.
	Eviction    time.Duration
	EvictionMax time.Duration
	// DrainQuiet is how long a drain waits for pods before an event reports it: evictions are refused during a normal
	// rollout too.
	DrainQuiet time.Duration
	// EvictionAnswer bounds one eviction request.
	EvictionAnswer time.Duration
	// InstancePoll and InstancePollMax bound the growing pause between queries whether a machine is gone. The first
	// query is sent at once.
	InstancePoll    time.Duration
	InstancePollMax time.Duration

	// Consistency is the period in which a node is compared with the status of its claim.
	Consistency time.Duration
	// PodEvent is the shortest time between two writes of a claim's last pod event.
	PodEvent time.Duration
	// Counting is the time within which node events of a pool are handled together.
	Counting time.Duration
	// ClassRecheck is the period in which a pool's node class is checked for readiness, in addition to events.
	ClassRecheck time.Duration
}

// Production returns the production timers.
func Production() Timers {
	return Timers{
		BatchIdle:    time.Second,
		BatchMax:     10 * time.Second,
		PodRetrigger: 10 * time.Second,
		Nomination:   20 * time.Second,
		WriteVisible: 5 * time.Second,
		Catalog:      5 * time.Minute,

		CatalogRead:  30 * time.Second,
		CatalogRetry: time.Second,

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

// timer is one field, with its name in --timers.
type timer struct {
	name string
	at   *time.Duration
}

// all returns the fields in the order of their declaration.
func (t *Timers) all() []timer {
	return []timer{
		{"batch-idle", &t.BatchIdle}, {"batch-max", &t.BatchMax}, {"pod-retrigger", &t.PodRetrigger},
		{"nomination", &t.Nomination}, {"write-visible", &t.WriteVisible}, {"catalogue", &t.Catalog},
		{"catalogue-read", &t.CatalogRead}, {"catalogue-retry", &t.CatalogRetry},
		{"disruption-poll", &t.DisruptionPoll}, {"command-retry", &t.CommandRetry}, {"command-timeout", &t.CommandTimeout}, {"validation", &t.Validation}, {"arrival", &t.Arrival},
		{"static-resync", &t.StaticResync}, {"static-retry", &t.StaticRetry},
		{"cordon-quiet", &t.CordonQuiet}, {"write", &t.Write},
		{"launch", &t.Launch}, {"registration", &t.Registration}, {"launch-memory", &t.LaunchMemory}, {"hook-retry", &t.HookRetry},
		{"collection", &t.Collection}, {"collection-first", &t.CollectionFirst}, {"leak", &t.Leak}, {"leak-unnoted", &t.LeakUnnoted}, {"node-gone", &t.NodeGone}, {"removal-window", &t.RemovalWindow}, {"second-look", &t.SecondLook}, {"retry", &t.Retry}, {"retry-max", &t.RetryMax},
		{"drift", &t.Drift}, {"type-drift", &t.TypeDrift}, {"bound", &t.Bound}, {"repair-retry", &t.RepairRetry},
		{"drain", &t.Drain}, {"drain-min", &t.DrainMin}, {"notice", &t.Notice}, {"drain-reserve", &t.DrainReserve}, {"pod-stuck", &t.PodStuck},
		{"eviction", &t.Eviction}, {"eviction-max", &t.EvictionMax}, {"drain-quiet", &t.DrainQuiet}, {"eviction-answer", &t.EvictionAnswer},
		{"instance-poll", &t.InstancePoll}, {"instance-poll-max", &t.InstancePollMax},
		{"consistency", &t.Consistency}, {"pod-event", &t.PodEvent}, {"counting", &t.Counting}, {"class-recheck", &t.ClassRecheck},
	}
}

// Set changes the timers that text names, "name=duration,...", and keeps the others. Together with String and Type it
// makes a *Timers a flag. On an error, nothing is changed.
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

// String lists all timers in the format that Set reads.
func (t *Timers) String() string {
	var items []string
	for _, field := range t.all() {
		items = append(items, field.name+"="+field.at.String())
	}
	return strings.Join(items, ",")
}

// Type returns the name of the kind of value for the help text of a flag.
func (t *Timers) Type() string { return "name=duration,..." }
