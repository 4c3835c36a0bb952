package awssim

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// Many individual launches take as long as EC2's token bucket requires: a burst of 50 and 5 per second, which is 50 s
// for 300, plus some time for the retries of the callers. All instances in the responses exist, and no others.
func TestManyLaunches(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		way := w.way("m5.large", zoneA)
		client := ec2.NewFromConfig(w.cfg, func(o *ec2.Options) {
			o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts, o.RateLimiter = 1000, noLimit{}
				o.MaxBackoff = 5 * time.Second
			})
		})
		began := time.Now()
		var group sync.WaitGroup
		for range 300 {
			group.Go(func() {
				if _, err := client.CreateFleet(ctx, fleetOf(1, onDemandType, way)); err != nil {
					t.Errorf("launching: %v", err)
				}
			})
		}
		group.Wait()
		elapsed, n := time.Since(began), len(w.Instances())
		switch {
		case n != 300:
			t.Errorf("n is %v, want 300", n)
		case elapsed < 50*time.Second:
			t.Errorf("took is %v, want at least %v, %d", elapsed, 50*time.Second, n)
		case elapsed > 2*time.Minute:
			t.Errorf("took is %v, want at most %v, %d", elapsed, 2*time.Minute, n)
		}
		if ok := w.Calls()[CallCount{"ec2", "CreateFleet", "OK"}]; ok != 300 {
			t.Errorf("%d calls succeeded", ok)
		}
	})
}

// noLimit leaves the number of retries to MaxAttempts.
type noLimit struct{}

func (noLimit) GetToken(context.Context, uint) (func() error, error) {
	return func() error { return nil }, nil
}

func (noLimit) AddTokens(uint) error { return nil }

// Serve works over sockets as well, and stops when its context ends.
func TestServe(t *testing.T) {
	cloud, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- cloud.Serve(ctx, listener) }()
	client := ec2.New(ec2.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://" + listener.Addr().String()),
		Credentials: credentials.NewStaticCredentialsProvider(testKey, "secret", "")})
	out, err := client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	if err != nil || len(out.Subnets) != 13 {
		t.Errorf("subnets over a socket: %v, %v", out, err)
	}
	answer, err := http.Get("http://" + listener.Addr().String() + "/")
	if err != nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("a request without credentials: %v, %v", answer, err)
	}
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("serving: %v", err)
	}
}
