package removals

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// provider is the part of the world's cloud that removals use.
type provider struct{ world World }

// errNoLaunch is returned by launches, which the world performs itself.
var errNoLaunch = errors.New("removals launch nothing")

func (p *provider) Name() string { return "sim" }

func (p *provider) NodeClasses() []client.Object {
	return []client.Object{&kwokv1alpha1.KWOKNodeClass{}}
}

func (p *provider) Declared() cloud.Declared { return cloud.Declared{} }

func (p *provider) Ready(context.Context, cloud.ClassRef) error { return nil }

func (p *provider) Catalog(context.Context, *karpv1.NodePool) ([]cloud.InstanceType, error) {
	return nil, nil
}

func (p *provider) Launch(context.Context, *karpv1.NodeClaim) (*cloud.Machine, error) {
	return nil, errNoLaunch
}

func (p *provider) Terminate(_ context.Context, id string) error { return p.world.Terminate(id) }

func (p *provider) Machine(_ context.Context, id string) (*cloud.Machine, error) {
	m, err := p.world.Machine(id)
	if err != nil {
		return nil, err
	}
	said := machineOf(m)
	return &said, nil
}

func (p *provider) Machines(context.Context) ([]cloud.Machine, error) {
	all, err := p.world.Machines()
	if err != nil {
		return nil, err
	}
	machines := make([]cloud.Machine, len(all))
	for i, m := range all {
		machines[i] = machineOf(m)
	}
	return machines, nil
}

func machineOf(m Machine) cloud.Machine {
	return cloud.Machine{ProviderID: m.ID, Claim: m.Claim, Created: m.Created, Terminating: m.Ending}
}
