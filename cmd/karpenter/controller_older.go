package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/cloud/aws"
	"github.com/karpenter-go/karpenter/internal/legacy"
)

// older returns what serves the versions before v1.
func (w *wiring) older() (*legacy.Versions, error) {
	var authority *x509.CertPool
	if w.o.service != "" || w.o.webhookPort == 0 { // else nothing is served
		var err error
		if authority, err = clientAuthority(w.o.webhookClientCA); err != nil {
			return nil, err
		}
	}
	return legacy.New(legacy.Config{
		Manager: w.mgr, Provider: w.provider, Pods: w.allPods, Recorder: w.recorder, Timers: w.o.timers, Clock: w.clock, API: w.config,
		Webhook: legacy.Webhook{
			Namespace: ownNamespace(""), Service: w.o.service, ServicePort: w.o.servicePort, Port: w.o.webhookPort,
			SecretNamespace: ownNamespace(w.o.electionNamespace), ClientCA: authority,
		},
		Kwok: w.o.cloudProvider == "kwok", Before: w.o.older, ClusterName: w.o.aws.clusterName, InstanceProfile: w.o.aws.instanceProfile,
		Minor: w.kubernetesMinor,
	}), nil
}

// allPods returns the pods of the store, once they are complete.
func (w *wiring) allPods(ctx context.Context) (iter.Seq[*corev1.Pod], error) {
	if !w.store.WaitForSync(ctx) {
		return nil, ctx.Err()
	}
	return w.store.EachPod, nil
}

// kubernetesMinor returns the minor version of the cluster where the provider knows it, else 0.
func (w *wiring) kubernetesMinor(ctx context.Context) int {
	provider, isAWS := w.provider.(*aws.Provider)
	if !isAWS {
		return 0
	}
	// On an error, the last known facts suffice; the start has waited for the first ones.
	facts, _ := provider.Sources().Cluster.Facts(ctx)
	_, after, _ := strings.Cut(facts.Version, ".")
	minor, _ := strconv.Atoi(after)
	return minor
}

// clientAuthority reads certificates from a file. It returns nil if no file is given.
func clientAuthority(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading --webhook-client-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading --webhook-client-ca: %s has no certificate in PEM", file)
	}
	return pool, nil
}
