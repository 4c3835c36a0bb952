package removals

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/node"
	"github.com/karpenter-go/karpenter/internal/controller/nodeclaim"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// IllCondition is the node condition that requires repair, besides Ready.
const IllCondition = "HardwareBroken"

// IllTolerated and SilentTolerated are how long a node may have IllCondition, and have Ready=Unknown, before it is
// replaced.
const (
	IllTolerated    = 5 * time.Minute
	SilentTolerated = 10 * time.Minute
)

// Policies holds the conditions that require repair, and how long each is tolerated.
var Policies = []cloud.RepairPolicy{
	{ConditionType: IllCondition, ConditionStatus: string(corev1.ConditionTrue), Toleration: IllTolerated},
	{ConditionType: string(corev1.NodeReady), ConditionStatus: string(corev1.ConditionUnknown), Toleration: SilentTolerated},
}

// Controllers holds the controllers of one process.
type Controllers struct {
	ctx       context.Context
	collector *nodeclaim.Collector
	repair    *node.Repair
}

// New returns the controllers of a new process.
func New(w World) *Controllers {
	timers, scheme := controller.Production(), schemeOf()
	provider, time := &provider{w}, passive{world: w}
	reader := &reader{world: w}
	writer := &writer{reader: reader, scheme: scheme}
	classes, err := controller.ClassesOf(provider, scheme)
	if err != nil {
		panic(fmt.Sprintf("the scheme lacks the node class: %v", err))
	}
	limiter := &removal.Limiter{Client: writer, Live: reader.live(), Provider: provider, Classes: classes, Metrics: metrics(),
		Timers: timers, Clock: time, Ahead: w.Ahead}
	c := &Controllers{
		ctx: ctrl.LoggerInto(context.Background(), logger(w)),
		collector: &nodeclaim.Collector{Client: writer, Live: reader.live(), Provider: provider, Metrics: metrics(), Timers: timers,
			Clock: time, Limiter: limiter},
		repair: &node.Repair{Client: writer, Live: reader.live(), Provider: provider, Policies: Policies, Metrics: metrics(), Timers: timers,
			Clock: time, Ahead: w.Ahead, Limiter: limiter},
	}
	if err := errors.Join(c.collector.Recognize(scheme), c.repair.Recognize(scheme)); err != nil {
		panic(fmt.Sprintf("the scheme lacks the node class: %v", err))
	}
	return c
}

// Collect runs a round of garbage collection.
func (c *Controllers) Collect() error { return c.collector.Collect(c.ctx) }

// Repair examines a node and returns the time after which it must be examined again; zero means at the next event.
func (c *Controllers) Repair(node string) (time.Duration, error) {
	result, err := c.repair.Reconcile(c.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: node}})
	return result.RequeueAfter, err
}

var schemeOf = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), karpv1.AddToScheme(scheme), kwokv1alpha1.AddToScheme(scheme)); err != nil {
		panic(fmt.Sprintf("building the scheme: %v", err))
	}
	return scheme
})

// metrics are shared by all worlds: nothing reads them.
var metrics = sync.OnceValue(func() *telemetry.Metrics { return telemetry.New(prometheus.NewRegistry()) })

func logger(w World) logr.Logger {
	return funcr.New(func(_, line string) { w.Log(line) }, funcr.Options{})
}

// passive is the controller's clock. The controllers in this package never wait.
type passive struct {
	clock.Clock
	world World
}

func (p passive) Now() time.Time                  { return p.world.Clock() }
func (p passive) Since(t time.Time) time.Duration { return p.world.Clock().Sub(t) }
