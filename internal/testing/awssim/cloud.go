package awssim

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// Cloud is one account in one region. It is safe for concurrent use.
type Cloud struct {
	opts  Options
	types map[string]*machineType
	names []string // names of the types, sorted

	mu        sync.Mutex
	rand      *rand.Rand
	due       timetable
	sequence  int
	wake      chan struct{} // tells Run that an event is due earlier than expected
	notices   []notice      // pending notifications for the hook
	delivered sync.Mutex    // held during calls of the hook, so that they are in order

	zones             []*zone
	subnets           []*subnet
	groups            []*securityGroup
	images            []*image
	parameters        map[string]parameter
	templates         []*launchTemplate
	instances         map[string]*instance
	order             []*instance // in the order of launches
	reservations      []*CapacityReservation
	reservedInstances []*ReservedInstances
	savingsPlans      []*SavingsPlan
	placements        []*PlacementGroup
	profiles          map[string]*instanceProfile
	roles             map[string]*role
	queues            map[string]*queue
	rules             map[string]*rule
	queue             *queue // of Options: the one that receives events
	tokens            map[string]idempotent
	pools             map[pool]*poolState
	buckets           map[string]*bucket
	faults            []*fault
	policies          []policy
	oddPages          bool          // for the current call
	thawed            chan struct{} // closed when the faults change
	expired           map[string]bool
	calls             map[CallCount]int
	unread            map[string]bool // parameters that were accepted: whether none was read so far
	failBoots         int
	shifts            []*zonalShift
	unmanaged         bool // the cluster is not registered for zonal shifts
}

// New returns a cloud with one VPC (a private and a public subnet per zone, tagged karpenter.sh/discovery=<cluster>, a
// security group of the cluster with the same tag, and a second VPC whose group has the same name), the EKS images of
// Kubernetes 1.30 to 1.37 with their SSM parameters, and no instances.
func New(opts Options) (*Cloud, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cloud{
		opts: opts, rand: rand.New(rand.NewPCG(opts.Seed, 0x617773)), wake: make(chan struct{}, 1),
		parameters: map[string]parameter{}, instances: map[string]*instance{}, profiles: map[string]*instanceProfile{},
		roles: map[string]*role{}, queues: map[string]*queue{}, rules: map[string]*rule{}, tokens: map[string]idempotent{},
		pools:   map[pool]*poolState{},
		buckets: map[string]*bucket{}, thawed: make(chan struct{}), expired: map[string]bool{}, calls: map[CallCount]int{},
		unread: map[string]bool{},
	}
	c.loadTypes()
	now := opts.Clock.Now()
	c.layNetwork()
	c.stockImages(now)
	c.addRoles(now)
	if opts.Queue != "" {
		c.queue = newQueue(opts.Queue, map[string]string{"MessageRetentionPeriod": strconv.Itoa(int(retention.Seconds()))}, now)
		c.queues[opts.Queue] = c.queue
	}
	if opts.Scarcity > 0 {
		c.after(now, epoch, c.shrinkPools)
	}
	return c, nil
}

// event is a scheduled event. do is called with the lock held and the time for which the event was scheduled.
type event struct {
	at  time.Time
	seq int
	do  func(now time.Time)
}

// timetable is a heap of events, by time and then by order of creation.
type timetable []event

func (t timetable) Len() int { return len(t) }
func (t timetable) Less(i, j int) bool {
	if !t[i].at.Equal(t[j].at) {
		return t[i].at.Before(t[j].at)
	}
	return t[i].seq < t[j].seq
}
func (t timetable) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timetable) Push(x any)   { *t = append(*t, x.(event)) }
func (t *timetable) Pop() any {
	last := (*t)[len(*t)-1]
	(*t)[len(*t)-1] = event{}
	*t = (*t)[:len(*t)-1]
	return last
}

// after schedules do for d after now. The caller holds the lock.
func (c *Cloud) after(now time.Time, d time.Duration, do func(time.Time)) {
	c.sequence++
	heap.Push(&c.due, event{now.Add(d), c.sequence, do})
	c.nudge()
}

func (c *Cloud) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// settle runs the events that are due and returns the time. The caller holds the lock.
func (c *Cloud) settle() time.Time {
	now := c.opts.Clock.Now()
	for len(c.due) > 0 && !c.due[0].at.After(now) {
		e := heap.Pop(&c.due).(event)
		e.do(e.at)
	}
	return now
}

// locked calls settle and then do with the lock held.
func (c *Cloud) locked(do func(now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c.settle())
}

// Settle runs the events that are due by the clock and calls the hook. Run does this automatically.
func (c *Cloud) Settle() {
	c.delivered.Lock()
	defer c.delivered.Unlock()
	var notices []notice
	c.locked(func(time.Time) { notices, c.notices = c.notices, nil })
	for _, n := range notices {
		n.call(n.instance)
	}
}

// notice is a notification for the hook.
type notice struct {
	call     func(Instance)
	instance Instance
}

// notify queues a call of the hook. The caller holds the lock.
func (c *Cloud) notify(method func(Hook) func(Instance), i *instance, now time.Time) {
	if c.opts.Hook != nil {
		c.notices = append(c.notices, notice{method(c.opts.Hook), i.public(now)})
		c.nudge()
	}
}

// Run runs events when they are due, until ctx ends. With a clock that is stepped manually, call Settle instead.
// Without either, events are run with the next request, under the time for which they were scheduled; only the hook
// waits for Settle.
func (c *Cloud) Run(ctx context.Context) {
	for {
		c.Settle()
		wait := time.Hour
		c.locked(func(now time.Time) {
			if len(c.due) > 0 {
				wait = c.due[0].at.Sub(now)
			}
			if len(c.notices) > 0 {
				wait = 0
			}
		})
		timer := c.opts.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		case <-c.wake:
			timer.Stop()
		}
	}
}

// vary returns d multiplied by a random factor from 0.75 to 1.25. The caller holds the lock.
func (c *Cloud) vary(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + c.rand.Float64()/2))
}

// seenAt returns the time whose state a read shows. The caller holds the lock.
func (c *Cloud) seenAt(now time.Time) time.Time {
	if c.opts.Lag == 0 {
		return now
	}
	return now.Add(-time.Duration(c.rand.Float64() * float64(c.opts.Lag)))
}

// newID returns a resource ID in EC2's format: prefix and 17 hexadecimal digits. The caller holds the lock.
func (c *Cloud) newID(prefix string) string {
	const digits = "0123456789abcdef"
	id := []byte(prefix + "-0")
	for range 16 {
		id = append(id, digits[c.rand.IntN(16)])
	}
	return string(id)
}
