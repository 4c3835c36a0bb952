package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// BeforeCaches is a runnable that runs on every replica, before caches are filled. The manager starts only webhooks
// that early.
type BeforeCaches struct {
	webhook.Server // for its type; the manager calls none of its methods
	Run            func(context.Context) error
}

// NeedLeaderElection returns false.
func (b BeforeCaches) NeedLeaderElection() bool { return false }

// Start runs until the context ends.
func (b BeforeCaches) Start(ctx context.Context) error { return b.Run(ctx) }
