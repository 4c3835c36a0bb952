package transport

import (
	"context"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Provider returns a provider whose launches and terminations are refused while this process may not write. It
// implements none of the optional interfaces of the wrapped provider.
func (g *Guard) Provider(inner cloud.Provider) cloud.Provider {
	return provider{inner, g}
}

type provider struct {
	cloud.Provider
	guard *Guard
}

// Launch implements cloud.Provider.
func (p provider) Launch(ctx context.Context, claim *karpv1.NodeClaim) (*cloud.Machine, error) {
	if err := p.guard.check("Launch"); err != nil {
		return nil, err
	}
	return p.Provider.Launch(ctx, claim)
}

// Terminate implements cloud.Provider.
func (p provider) Terminate(ctx context.Context, providerID string) error {
	if err := p.guard.check("Terminate"); err != nil {
		return err
	}
	return p.Provider.Terminate(ctx, providerID)
}
