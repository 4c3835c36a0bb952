package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/karpenter-go/karpenter/api"
	"github.com/karpenter-go/karpenter/internal/legacy/webhook"
)

// beforeCaches is a runnable that runs on every replica, before caches are filled. The manager starts only webhooks
// that early.
type beforeCaches struct {
	crwebhook.Server // for its type; the manager calls none of its methods
	start            func(context.Context) error
}

// NeedLeaderElection returns false, because the API server may call any replica.
func (b beforeCaches) NeedLeaderElection() bool { return false }

// Start runs until the context ends.
func (b beforeCaches) Start(ctx context.Context) error { return b.start(ctx) }

// addConversion serves older versions of the API, if there is a Service through which the API server reaches this
// process. Outside a cluster there is none. The definitions then keep the conversion settings of another process,
// unless the webhook is switched off, which is written to the definitions.
func (w *wiring) addConversion() error {
	log := w.mgr.GetLogger().WithName("conversion")
	if w.o.service == "" && w.o.webhookPort != 0 {
		log.Info("v1beta1 of NodePool, NodeClaim and EC2NodeClass is not converted here: --karpenter-service does not name the Service by which the API server would find the webhook. v1 is not concerned")
		return nil
	}
	scheme, err := api.NewScheme()
	if err != nil {
		return err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	api, err := client.NewWithWatch(w.config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("setting up the conversion webhook: %w", err)
	}
	server := &webhook.Server{
		Client: api, Namespace: ownNamespace(""), Service: w.o.service, ServicePort: w.o.servicePort, Port: w.o.webhookPort, SecretNamespace: ownNamespace(w.o.electionNamespace),
		Clock: w.clock, Log: log,
	}
	if server.ClientCA, err = clientAuthority(w.o.webhookClientCA); err != nil {
		return err
	}
	if err := w.mgr.Add(beforeCaches{start: server.Start}); err != nil || w.o.webhookPort == 0 {
		return err
	}
	storage := &webhook.Storage{Client: api, Classes: w.o.cloudProvider == "aws", Clock: w.clock, Log: log}
	return w.mgr.Add(manager.RunnableFunc(storage.Start))
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
