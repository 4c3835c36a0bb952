package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server is the webhook on one replica. All exported fields except Look, Listener and ClientCA are required.
type Server struct {
	// Client reads from the API server, without a cache: caches may have to wait for this webhook.
	Client client.WithWatch
	// Namespace and Service are the service by which the API server reaches the webhook, at ServicePort (0: Port).
	// Port is the port on which the server listens. 0 disables the webhook.
	Namespace   string
	Service     string
	ServicePort int
	Port        int
	// Listener is the first listener, if the port is already open.
	Listener net.Listener
	// ClientCA, if set, holds the authorities that must have signed the certificates of clients. Other clients are
	// rejected. An API server presents a certificate to conversion webhooks only behind a proxy that adds one.
	ClientCA *x509.CertPool
	// SecretNamespace is the namespace of the Secret SecretName.
	SecretNamespace string
	Clock           clock.WithTicker
	Log             logr.Logger
	// Look is the period in which the Secret and the definitions are checked without events (0: half a minute).
	Look time.Duration

	keeper  *keeper
	pointer *pointer
	wake    chan struct{}
}

// SecretName is the name of the Secret with the certificate.
const SecretName = "karpenter-conversion"

// Start serves until the context ends. Failures are logged and retried: clients of v1 do not need the webhook once all
// objects are stored in v1, and must not lose their controller because of it. The only error is about objects that
// cannot be read while the webhook is disabled.
func (s *Server) Start(ctx context.Context) error {
	s.wake = make(chan struct{}, 1)
	if s.Look <= 0 {
		s.Look = 30 * time.Second
	}
	if s.Port == 0 {
		if err := s.mayBeOff(ctx); err != nil {
			return err
		}
	}
	s.pointer = &pointer{client: s.Client, writers: otherWriters{now: s.Clock.Now, wait: s.Look}}
	host := s.Service + "." + s.Namespace
	s.keeper = &keeper{
		client: s.Client, namespace: s.SecretNamespace, name: SecretName, now: s.Clock.Now,
		names: []string{host + ".svc", host + ".svc.cluster.local"},
	}
	var running sync.WaitGroup
	defer running.Wait()
	for _, name := range Definitions() {
		running.Go(func() { s.watch(ctx, name) })
	}
	if s.Port != 0 {
		running.Go(func() { s.serve(ctx) })
	}
	ticker := s.Clock.NewTicker(s.Look)
	defer ticker.Stop()
	said := ""
	for {
		err := s.settle(ctx)
		if err != nil && err.Error() != said && ctx.Err() == nil {
			s.Log.Error(err, "older versions of NodePool, NodeClaim and EC2NodeClass cannot be converted; "+
				"v1 needs no conversion once all objects are stored in it")
		}
		if said = ""; err != nil {
			said = err.Error()
		}
		s.pause(ctx) // the controller's own changes trigger it too
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-s.wake:
		}
	}
}

// mayBeOff returns an error if some objects may be stored in an older version, because no webhook converts them while
// it is disabled.
func (s *Server) mayBeOff(ctx context.Context) error {
	older, err := olderStored(ctx, s.Client)
	if err != nil {
		s.Log.Error(err, "cannot determine whether objects are stored in an older version")
		return nil
	}
	var names []string
	for _, definition := range older {
		names = append(names, definition.Name)
	}
	if len(names) > 0 {
		return fmt.Errorf("the conversion webhook is disabled, and objects of %s may be stored in an older version (status.storedVersions), which cannot be read then: "+
			"enable it (--webhook-port=8443; chart: conversion.enabled=true) until the log reports that they are rewritten", strings.Join(names, ", "))
	}
	return nil
}

// settle makes the certificate and the definitions match the desired state. The bundle is that of the Secret as it is
// now, so that replicas do not revert each other's changes.
func (s *Server) settle(ctx context.Context) error {
	target := apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
		Namespace: s.Namespace, Name: SwitchedOff, Path: new(Path), Port: new(int32(443)),
	}}
	if s.Port != 0 {
		bundle, err := s.keeper.ensure(ctx)
		if err != nil {
			return err
		}
		target.CABundle, target.Service.Name, target.Service.Port = bundle, s.Service, new(int32(cmp.Or(s.ServicePort, s.Port)))
	}
	var wrong error
	for _, name := range Definitions() {
		changed, err := s.pointer.pointTo(ctx, name, target)
		wrong = errors.Join(wrong, err)
		if changed {
			s.Log.Info("registered the conversion webhook", "definition", name, "service", target.Service.Namespace+"/"+target.Service.Name)
		}
	}
	return wrong
}

// serve listens until the context ends.
func (s *Server) serve(ctx context.Context) {
	mux := http.NewServeMux()
	mux.Handle(Path, newReviewer(s.Client, s.Clock.Now, s.Log))
	for ctx.Err() == nil {
		err := s.listen(ctx, mux)
		if err == nil {
			return
		}
		s.Log.Error(err, "the conversion webhook cannot listen; retrying", "port", s.Port)
		s.pause(ctx)
	}
}

func (s *Server) listen(ctx context.Context, handler http.Handler) error {
	listener := s.Listener
	s.Listener = nil // it can be used once
	if listener == nil {
		var err error
		if listener, err = net.Listen("tcp", ":"+strconv.Itoa(s.Port)); err != nil {
			return err
		}
	}
	server := s.bounded(handler)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		// Conversions in progress get at most the time for which the API server waits.
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(brief)
	})
	defer stop()
	if err := server.ServeTLS(netutil.LimitListener(listener, mostConnections), "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-ended
	return nil
}

// bounded returns a server whose clients cost a bounded amount of memory and time, whatever they send. It has no
// HTTP/2, which puts many requests on one connection: API servers call webhooks by HTTP/1.1
// (https://issue.k8s.io/75791).
func (s *Server) bounded(handler http.Handler) *http.Server {
	settings := &tls.Config{GetCertificate: s.keeper.certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if s.ClientCA != nil {
		settings.ClientCAs, settings.ClientAuth = s.ClientCA, tls.RequireAndVerifyClientCert
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: handler, Protocols: &protocols,
		ReadHeaderTimeout: readTime, ReadTimeout: placeTime + readTime, WriteTimeout: longestTime + 5*time.Second,
		IdleTimeout: 90 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog:  log.New(io.Discard, "", 0), // of handshakes: the API server reports its own
		TLSConfig: settings,
	}
}

// watch triggers a check when a definition is changed, for example by an upgrade of its chart.
func (s *Server) watch(ctx context.Context, name string) {
	for ctx.Err() == nil {
		watching, err := s.Client.Watch(ctx, &apiextensionsv1.CustomResourceDefinitionList{},
			&client.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name)})
		if err != nil {
			s.Log.V(1).Info("the definition cannot be watched; it is read periodically instead", "definition", name, "why", err.Error())
			s.pause(ctx)
			continue
		}
		for range watching.ResultChan() {
			select {
			case s.wake <- struct{}{}:
			default: // a check is pending already
			}
		}
		watching.Stop()
		s.pause(ctx)
	}
}

// pause waits before a retry.
func (s *Server) pause(ctx context.Context) {
	timer := s.Clock.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
