package conversion

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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server is the webhook on one replica. All fields but Look, Listener and ClientCA are needed.
type Server struct {
	// Client asks the API server itself, without a cache: caches may have to wait for us.
	Client client.WithWatch
	// Namespace and Service are how the API server reaches us, by ServicePort (0: Port). Port is what we listen on; with 0
	// the webhook is switched off.
	Namespace   string
	Service     string
	ServicePort int
	Port        int
	// Listener is what is listened on first, if somebody has opened the port already.
	Listener net.Listener
	// ClientCA, if set, is who has to have signed the certificates of clients; others are turned away. An API server offers
	// a certificate to conversion webhooks only behind a proxy that adds one.
	ClientCA *x509.CertPool
	// SecretNamespace is where SecretName is.
	SecretNamespace string
	Clock           clock.WithTicker
	Log             logr.Logger
	// Look is how often the Secret and the definitions are looked at even if nothing happens (0: half a minute).
	Look time.Duration

	keeper  *keeper
	pointer *pointer
	wake    chan struct{}
}

// SecretName is the Secret that has the certificate.
const SecretName = "karpenter-conversion"

// Start serves until the context ends. What goes wrong is said in the log and tried again: clients of v1 need none of this,
// and must not lose their controller over it. The one error is objects that nobody can read while the webhook is off.
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
	s.pointer = &pointer{client: s.Client, rivals: rivals{now: s.Clock.Now, wait: s.Look}}
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
			s.Log.Error(err, "older versions of NodePool, NodeClaim and EC2NodeClass cannot be converted; v1 is not concerned")
		}
		if said = ""; err != nil {
			said = err.Error()
		}
		s.pause(ctx) // what we change wakes us too
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-s.wake:
		}
	}
}

// mayBeOff says whether all objects are stored in v1, as they have to be while nobody converts.
func (s *Server) mayBeOff(ctx context.Context) error {
	older, err := olderStored(ctx, s.Client)
	if err != nil {
		s.Log.Error(err, "cannot see whether objects are stored in an older version")
		return nil
	}
	var names []string
	for _, definition := range older {
		names = append(names, definition.Name)
	}
	if len(names) > 0 {
		return fmt.Errorf("the conversion webhook is switched off, and objects of %s may be stored in an older version (status.storedVersions), which then nobody can read: "+
			"switch it on (--webhook-port=8443; chart: conversion.enabled=true) until the log says that they are rewritten", strings.Join(names, ", "))
	}
	return nil
}

// settle makes the certificate and the definitions what they should be. The bundle is that of the Secret as it is now, so
// that replicas do not undo what another has just done.
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
		s.Log.Error(err, "the conversion webhook cannot listen; trying again", "port", s.Port)
		s.pause(ctx)
	}
}

func (s *Server) listen(ctx context.Context, handler http.Handler) error {
	listener := s.Listener
	s.Listener = nil // it serves once
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
		// Conversions that are under way have the time that the API server gives them at most.
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(brief)
	})
	defer stop()
	if err := server.ServeTLS(&crowd{Listener: listener}, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-ended
	return nil
}

// bounded is a server whose clients cost a bounded amount of memory and time, whatever they send.
func (s *Server) bounded(handler http.Handler) *http.Server {
	settings := &tls.Config{GetCertificate: s.keeper.certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if s.ClientCA != nil {
		settings.ClientCAs, settings.ClientAuth = s.ClientCA, tls.RequireAndVerifyClientCert
	}
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: longestTime, WriteTimeout: longestTime + 5*time.Second,
		IdleTimeout: 90 * time.Second, MaxHeaderBytes: 16 << 10,
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: 64, MaxReceiveBufferPerConnection: 256 << 10, MaxReceiveBufferPerStream: 128 << 10},
		ErrorLog:  log.New(io.Discard, "", 0), // of handshakes: the API server reports its own
		TLSConfig: settings,
	}
}

// watch looks when somebody changes a definition, such as an upgrade of the chart that it is part of.
func (s *Server) watch(ctx context.Context, name string) {
	for ctx.Err() == nil {
		watching, err := s.Client.Watch(ctx, &apiextensionsv1.CustomResourceDefinitionList{},
			&client.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name)})
		if err != nil {
			s.Log.V(1).Info("the definition cannot be watched; it is looked at from time to time", "definition", name, "why", err.Error())
			s.pause(ctx)
			continue
		}
		for range watching.ResultChan() {
			select {
			case s.wake <- struct{}{}:
			default: // it will be looked at in any case
			}
		}
		watching.Stop()
		s.pause(ctx)
	}
}

// pause waits before something is tried again.
func (s *Server) pause(ctx context.Context) {
	timer := s.Clock.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
