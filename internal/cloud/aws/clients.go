package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/upkeep"
)

// Clients are the clients of the AWS services that the provider calls.
type Clients struct {
	EC2 *ec2.Client
	SSM *ssm.Client
	EKS *eks.Client
	IAM *iam.Client
	SQS *sqs.Client
	// Pricing is a client of the price list API, which exists in few regions (see upkeep.PricingRegion).
	Pricing *pricing.Client
	// ZonalShift is a client of Amazon Application Recovery Controller.
	ZonalShift *arczonalshift.Client
	// Plans is a client of Savings Plans, which has one endpoint for all regions of a partition.
	Plans *savingsplans.Client
}

// ClientsOf returns the clients for a configuration.
func ClientsOf(cfg aws.Config) Clients {
	queues := sqs.NewFromConfig(cfg)
	cfg = cfg.Copy()
	cfg.APIOptions = append(slices.Clone(cfg.APIOptions), call.Answered)
	list := cfg.Copy()
	list.Region = upkeep.PricingRegion(cfg.Region)
	return Clients{Pricing: pricing.NewFromConfig(list), EC2: ec2.NewFromConfig(cfg), SSM: ssm.NewFromConfig(cfg),
		EKS: eks.NewFromConfig(cfg), IAM: iam.NewFromConfig(cfg), SQS: queues, ZonalShift: arczonalshift.NewFromConfig(cfg),
		Plans: savingsplans.NewFromConfig(cfg)}
}

// answerTime is the maximum time that the transport waits for a response. Each caller has a shorter timeout.
const answerTime = 4 * time.Minute

// Config finds credentials, region and endpoint by the defaults of the SDK: environment (including AWS_REGION and
// AWS_ENDPOINT_URL), shared files, pod identity, instance metadata. The agent identifies the program in AWS's logs.
func Config(ctx context.Context, agent string) (aws.Config, error) { return ConfigIn(ctx, agent, "") }

// ConfigIn is Config with a given region, unless region is empty.
func ConfigIn(ctx context.Context, agent, region string) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region),
		// Failures are returned as errors of their calls. Plain-text warnings do not belong in a JSON log or a
		// terminal UI.
		config.WithLogger(logging.Nop{}),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(answerTime).WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = 100 })),
		config.WithAPIOptions([]func(*middleware.Stack) error{awsmiddleware.AddUserAgentKey(agent)}))
	if err != nil {
		return cfg, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if cfg.Region != "" {
		return cfg, nil
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	found, err := imds.NewFromConfig(cfg).GetRegion(limited, &imds.GetRegionInput{})
	if err != nil {
		return cfg, fmt.Errorf("finding the AWS region: set AWS_REGION, or allow access to the instance's metadata: %w", err)
	}
	cfg.Region = found.Region
	return cfg, nil
}

// NoCredentialsError means that the SDK finds no credentials. Its message says what to set. Err has the attempts of the
// SDK.
type NoCredentialsError struct {
	// Configured lists the environment variables that configure credentials which do not work. It is empty if none are
	// set.
	Configured []string
	Err        error
}

func (e *NoCredentialsError) Error() string {
	if len(e.Configured) > 0 {
		return fmt.Sprintf("no AWS credentials by %s: %v", strings.Join(e.Configured, ", "), innermost(e.Err))
	}
	return "no AWS credentials: associate an IAM role with the controller's service account (EKS Pod Identity, or the annotation eks.amazonaws.com/role-arn), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
}

func (e *NoCredentialsError) Unwrap() error { return e.Err }

// innermost returns the last error in a chain of wrapped errors.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// sources are the environment variables that refer to credentials
// (https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html).
var sources = []string{"AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_PROFILE"}

// Credentials checks that the SDK finds credentials. Its error says in one line what to set.
func Credentials(ctx context.Context, cfg aws.Config) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err := cfg.Credentials.Retrieve(ctx)
	if err == nil {
		return nil
	}
	// Retrieving credentials needs the region, too.
	if absent := new(NoRegionError); errors.As(regionOf(cfg.Region, err), &absent) {
		return absent
	}
	failed := &NoCredentialsError{Err: err}
	for _, name := range sources {
		if os.Getenv(name) != "" {
			failed.Configured = append(failed.Configured, name)
		}
	}
	return failed
}

// Reachable checks that EC2 accepts a request. Without network, credentials or permission, its one-line error is
// reported at startup.
func Reachable(ctx context.Context, clients Clients) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err := clients.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
	var answer smithy.APIError
	if errors.As(err, &answer) && answer.ErrorCode() == "DryRunOperation" {
		return nil
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("checking whether EC2 can be reached: %w", regionOf(clients.EC2.Options().Region, err))
}
