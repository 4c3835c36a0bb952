package world

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Config holds what a world begins with.
type Config struct {
	// Seed breaks the ties of kube-scheduler.
	Seed uint64
	// Now is the time at the start.
	Now time.Time
	// Objects exist at the start: NodePools, pods, and nodes with their NodeClaims. The world changes them.
	Objects []client.Object
	// Types are what the cloud offers, and Labels the keys that it declares.
	Types  []cloud.InstanceType
	Labels []string

	Disruption disruption.Options
	// Overlays says that NodeOverlays apply, Replicas that pods are planned before their ReplicaSets create them.
	Overlays, Replicas bool
	// PriceRules are those of the price file, nil for none; SetPriceRules needs some.
	PriceRules []pricerule.Rule
	// Judge says that plans and removals are checked.
	Judge bool
	// Timers are those of the controllers; zero for production's.
	Timers controller.Timers
	// Periodic says that passes of the disruption loop follow its timer alone.
	Periodic bool
	// MachineTime is the time from a launch to a node, 30 s if it is zero. PodStop is the time that a pod takes to end.
	MachineTime, PodStop time.Duration
	// Lag is the longest time after which a watch shows a change.
	Lag time.Duration
	// Log receives a line for each write of the controller. It may be nil.
	Log func(line string)
	// Lines receives each line that the controller logs at level info, in the form of its log. It may be nil.
	Lines func(line string)
	// Plant changes the parts of each process, to check that a property detects a bug. It may be nil.
	Plant func(*Parts)
}

// World is a cluster on a virtual clock. It runs in one goroutine.
type World struct {
	Clock *Clock
	// Tally counts events since the start, Meter sums what the time has cost.
	Tally Tally
	Meter Meter

	config   Config
	read     *reading
	scheme   *runtime.Scheme
	api      *api
	provider *provider
	kube     *kube
	owners   map[types.UID]*owner
	process  *process
	ledger   ledger
	removals *removals
	// disruptions judges plans and the removals of loops. counting says that budgets will be counted.
	disruptions *disruptions
	counting    bool
	made        int
	random      *rand.Rand
	// crash is after how many writes the process ends; 0 for never.
	crash int
	// flaky is until when some writes are refused, or their answers lost; lost says that this happens to the current one.
	flaky time.Time
	lost  bool
	// failure is the first property that does not hold.
	failure error
	// begun says that the objects of the start exist.
	begun bool
}

// New returns a world, in which a process has started.
func New(config Config) (*World, error) {
	if config.Timers == (controller.Timers{}) {
		config.Timers = controller.Production()
	}
	config.MachineTime = cmp.Or(config.MachineTime, 30*time.Second)
	w := &World{Clock: &Clock{now: config.Now}, config: config, owners: map[types.UID]*owner{}, ledger: newLedger(),
		random: rand.New(rand.NewPCG(config.Seed, 0x5eed))}
	w.read = &reading{Clock: w.Clock}
	var err error
	if w.scheme, err = schemeOf(); err != nil {
		return nil, err
	}
	index := &fake{fields: map[kind]map[string]func(client.Object) []string{}}
	if err := controller.Index(context.Background(), index); err != nil {
		return nil, err
	}
	w.api = &api{clock: w.Clock, shelves: shelves{fields: index.fields, kinds: map[kind]*shelf{}}, hear: w.hear}
	w.provider = &provider{world: w, machines: map[string]*machine{}, ended: map[string]*machine{}, taken: map[string]bool{}}
	w.removals, w.disruptions = &removals{World: w}, &disruptions{World: w, leaving: map[string]*karpv1.NodeClaim{}}
	w.kube = &kube{world: w, hosts: map[string]*host{}}
	w.api.create(&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: Class.Name}})
	for _, o := range config.Objects {
		if !w.api.create(o) {
			return nil, fmt.Errorf("%s exists twice", text(o))
		}
		if claim, is := o.(*karpv1.NodeClaim); is {
			w.provider.adopt(claim)
		}
	}
	w.process, err = newProcess(w)
	w.begun = true
	return w, err
}

// SetPriceRules replaces the rules of the price file.
func (w *World) SetPriceRules(rules []pricerule.Rule) error {
	w.config.PriceRules = rules
	if w.process == nil {
		return nil
	}
	return w.process.store.SetPriceRules(rules)
}

// Close ends the process.
func (w *World) Close() {
	if w.process != nil {
		w.process.stop()
		w.process = nil
	}
	w.api.views = nil
}

// Crash ends the process before its write of that number from now on; 1 is the next. Another one starts within 20 s.
func (w *World) Crash(write int) { w.crash = write }

// permit is called before each write of a process. An error means that the process has ended.
func (w *World) permit(ctx context.Context, text string) error {
	if w.crash > 0 && ctx.Err() == nil {
		if w.crash--; w.crash == 0 {
			w.log("crashes before it can " + text)
			w.Close()
			w.Clock.in(w.between(time.Second, 20*time.Second), w.restart)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fault := 0
	if w.flaky.After(w.Clock.now) {
		fault = w.random.IntN(5)
	}
	if w.lost = fault == 2; fault == 1 {
		w.log(text + " (refused)")
		return apierrors.NewTooManyRequests("refused", 1)
	}
	w.log(text)
	return nil
}

// answer ends a write: its answer may be lost.
func (w *World) answer() error {
	if !w.lost {
		return nil
	}
	w.lost = false
	w.log("the answer is lost")
	return apierrors.NewTimeoutError("the answer is lost", 1)
}

func (w *World) restart() {
	var err error
	if w.process, err = newProcess(w); err != nil {
		panic(err) // it was wired before
	}
}

func (w *World) log(text string) {
	if w.config.Log != nil {
		w.config.Log(fmt.Sprintf("%9.3f %s", w.Clock.now.Sub(w.config.Now).Seconds(), text))
	}
}

// between returns a random duration.
func (w *World) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.random.Int64N(int64(most-least)+1))
}

// lag returns after what time a watch shows a change.
func (w *World) lag() time.Duration {
	if w.config.Lag == 0 {
		return 0
	}
	return w.between(0, w.config.Lag)
}

// hear passes each change of the API to what is around it.
func (w *World) hear(before, after client.Object) {
	w.kube.saw(before, after)
	w.owned(before, after)
	w.ledger.saw(w, before, after)
	if was, is := before.(*karpv1.NodeClaim); is {
		now, _ := after.(*karpv1.NodeClaim)
		w.removals.saw(was, now)
		w.disruptions.saw(was, now)
	}
	w.recount(cmp.Or[any](after, before).(client.Object))
}

// Snapshot returns the state as the engine sees it.
func (w *World) Snapshot() *model.Snapshot {
	w.settle()
	return w.process.store.Snapshot(w.Clock.now)
}

// settle lets everything happen that is due now.
func (w *World) settle() {
	for {
		switch {
		case w.Clock.event():
		case w.kube.dirty:
			w.kube.schedule()
		case w.process != nil && w.process.step():
		default:
			return
		}
	}
}

// next returns when something happens next.
func (w *World) next() time.Time {
	first := w.Clock.first()
	if w.process == nil {
		return first
	}
	next := w.process.next()
	if next.IsZero() || !first.IsZero() && first.Before(next) {
		return first
	}
	return next
}

// Advance advances the time.
func (w *World) Advance(d time.Duration) {
	until := w.Clock.now.Add(d)
	for w.settle(); ; w.settle() {
		next := w.next()
		if next.IsZero() || next.After(until) {
			w.pass(until)
			return
		}
		w.pass(next)
	}
}

// pass advances the time while nothing happens.
func (w *World) pass(to time.Time) {
	w.meter(to.Sub(w.Clock.now))
	w.Clock.now = to
}

// Rest advances the time until nothing was written for a while, at most for the given time.
func (w *World) Rest(quiet, most time.Duration) error {
	began := w.Clock.now
	for since, version := began, w.ledger.version; w.Clock.now.Sub(began) < most; {
		w.Advance(time.Second)
		if w.ledger.version != version || w.process == nil {
			since, version = w.Clock.now, w.ledger.version
		}
		if w.Clock.now.Sub(since) >= quiet {
			return nil
		}
	}
	return fmt.Errorf("not at rest after %s: %d pods pending", most, len(w.kube.waiting))
}

// Pods returns the pods of the world.
func (w *World) Pods() []*corev1.Pod { return listOf[*corev1.Pod](w.api) }

// Interrupt ends a node, as the notice of a spot interruption does: its claim is deleted, and it is drained.
func (w *World) Interrupt(node string) {
	if h := w.kube.hosts[node]; h != nil {
		for _, c := range w.api.shelves.list(kindOf(&karpv1.NodeClaim{}), controller.FieldClaimProviderID, h.Spec.ProviderID) {
			w.api.delete(c, nil)
		}
	}
}
