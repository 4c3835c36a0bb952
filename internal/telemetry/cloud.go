package telemetry

import (
	"context"
	"errors"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Instrument returns the provider with its calls counted and timed for one controller, which becomes a label. The
// result implements cloud.Repairer and cloud.DriftDetector exactly when the provider does.
func Instrument(provider cloud.Provider, metrics *Metrics, controller string) cloud.Provider {
	p := &instrumented{Provider: provider, metrics: metrics, controller: controller}
	repairer, repairs := provider.(cloud.Repairer)
	detector, detects := provider.(cloud.DriftDetector)
	drift := drifting{p, detector}
	switch {
	case repairs && detects:
		return struct {
			*instrumented
			cloud.Repairer
			drifting
		}{p, repairer, drift}
	case repairs:
		return struct {
			*instrumented
			cloud.Repairer
		}{p, repairer}
	case detects:
		return struct {
			*instrumented
			drifting
		}{p, drift}
	}
	return p
}

// instrumented measures the methods that call the cloud. The names of the methods in the metrics are those of
// upstream Karpenter.
type instrumented struct {
	cloud.Provider
	metrics    *Metrics
	controller string
}

func (p *instrumented) Launch(ctx context.Context, claim *karpv1.NodeClaim) (*cloud.Machine, error) {
	began := time.Now()
	machine, err := p.Provider.Launch(ctx, claim)
	p.observeClaim("Create", claim.Name, began, err)
	p.metrics.Traces.Step(Step{Claim: claim.Name, Pool: claim.Labels[karpv1.LabelNodePool], Name: "cloud create",
		Before: claim.CreationTimestamp.Time, Begin: began, End: time.Now(), Err: err})
	return machine, err
}

func (p *instrumented) Terminate(ctx context.Context, providerID string) error {
	began := time.Now()
	err := p.Provider.Terminate(ctx, providerID)
	p.observe("Delete", began, err)
	return err
}

func (p *instrumented) Machine(ctx context.Context, providerID string) (*cloud.Machine, error) {
	began := time.Now()
	machine, err := p.Provider.Machine(ctx, providerID)
	p.observe("Get", began, err)
	return machine, err
}

func (p *instrumented) Machines(ctx context.Context) ([]cloud.Machine, error) {
	began := time.Now()
	machines, err := p.Provider.Machines(ctx)
	p.observe("List", began, err)
	return machines, err
}

func (p *instrumented) Catalog(ctx context.Context, pool *karpv1.NodePool) ([]cloud.InstanceType, error) {
	began := time.Now()
	types, err := p.Provider.Catalog(ctx, pool)
	p.observe("GetInstanceTypes", began, err)
	return types, err
}

type drifting struct {
	measure  *instrumented
	detector cloud.DriftDetector
}

func (d drifting) Drifted(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool) (string, error) {
	began := time.Now()
	reason, err := d.detector.Drifted(ctx, claim, pool)
	d.measure.observe("IsDrifted", began, err)
	return reason, err
}

func (p *instrumented) observe(method string, began time.Time, err error) {
	p.observeClaim(method, "", began, err)
}

// observeClaim is observe for a call about one claim.
func (p *instrumented) observeClaim(method, claim string, began time.Time, err error) {
	ObserveExample(p.metrics.CloudDuration.WithLabelValues(p.controller, method, p.Name()), time.Since(began).Seconds(), ExemplarClaim, claim)
	if err != nil {
		p.metrics.CloudErrors.WithLabelValues(p.controller, method, p.Name(), errorLabel(err)).Inc()
	}
}

// These are the values of the label error of CloudErrors, which are upstream Karpenter's. Other errors have none.
const (
	ErrorNotFound             = "NodeClaimNotFoundError"
	ErrorInsufficientCapacity = "InsufficientCapacityError"
	ErrorNodeClassNotReady    = "NodeClassNotReadyError"
)

// errorLabel returns the kind of an error.
func errorLabel(err error) string {
	var capacity *cloud.InsufficientCapacityError
	var class *cloud.NodeClassNotReadyError
	switch {
	case errors.Is(err, cloud.ErrNotFound):
		return ErrorNotFound
	case errors.As(err, &capacity):
		return ErrorInsufficientCapacity
	case errors.As(err, &class):
		return ErrorNodeClassNotReady
	}
	return ""
}
