package commitment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans/types"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// PlansAPI has the methods of *savingsplans.Client that the package calls.
type PlansAPI interface {
	DescribeSavingsPlans(context.Context, *savingsplans.DescribeSavingsPlansInput,
		...func(*savingsplans.Options)) (*savingsplans.DescribeSavingsPlansOutput, error)
	DescribeSavingsPlanRates(context.Context, *savingsplans.DescribeSavingsPlanRatesInput,
		...func(*savingsplans.Options)) (*savingsplans.DescribeSavingsPlanRatesOutput, error)
}

const (
	// planPage is the largest page of both calls.
	// https://docs.aws.amazon.com/savingsplans/latest/APIReference/API_DescribeSavingsPlanRates.html
	planPage = 1000
	// mostRate and mostCommitment, in USD per hour, are beyond all that is sold. More is no answer of AWS.
	mostRate, mostCommitment = 1000, 1e7
	year                     = 365 * 24 * time.Hour
	serviceOfPlans           = "savingsplans"
)

// planTypes are those that cover EC2.
var planTypes = []string{string(types.SavingsPlanTypeCompute), string(types.SavingsPlanTypeEc2Instance)}

// rateFilters are of what machines are: on demand, Linux, shared tenancy. A Compute Savings Plan has thousands of other
// rates.
func (r *Reader) rateFilters() map[types.SavingsPlanRateFilterName]string {
	return map[types.SavingsPlanRateFilterName]string{types.SavingsPlanRateFilterNameRegion: r.Region,
		types.SavingsPlanRateFilterNameProductDescription: products[0], types.SavingsPlanRateFilterNameTenancy: "shared",
		types.SavingsPlanRateFilterNameProductType: string(types.SavingsPlanProductTypeEc2)}
}

// plans returns the Savings Plans that are active and cover machines of the region, with their rates.
func (r *Reader) plans(ctx context.Context, calls *call.Caller) ([]Plan, error) {
	if r.Plans == nil {
		return nil, nil
	}
	var plans []Plan
	sieve := calls.Sieve(serviceOfPlans, "DescribeSavingsPlans")
	defer sieve.Close()
	pages := &pager[*savingsplans.DescribeSavingsPlansOutput]{next: func(ctx context.Context, token *string) (
		*savingsplans.DescribeSavingsPlansOutput, *string, error) {
		out, err := r.Plans.DescribeSavingsPlans(ctx, &savingsplans.DescribeSavingsPlansInput{NextToken: token,
			MaxResults: aws.Int32(planPage), States: []types.SavingsPlanState{types.SavingsPlanStateActive},
			Filters: []types.SavingsPlanFilter{{Name: types.SavingsPlansFilterNameSavingsPlanType, Values: planTypes}}})
		if err != nil {
			return nil, nil, err
		}
		return out, out.NextToken, nil
	}}
	for page, err := range call.Pages(ctx, calls, serviceOfPlans, "DescribeSavingsPlans", pages) {
		if err != nil {
			return nil, fmt.Errorf("reading Savings Plans: %w", err)
		}
		for i := range page.SavingsPlans {
			x := &page.SavingsPlans[i]
			asked := x.State == types.SavingsPlanStateActive && slices.Contains(planTypes, string(x.SavingsPlanType))
			if p, counts := r.plan(x); sieve.Keep(asked, aws.ToString(x.SavingsPlanId)) && counts {
				plans = append(plans, p)
			}
		}
	}
	for i := range plans {
		if err := r.rates(ctx, calls, &plans[i]); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(plans, func(p Plan) bool { return len(p.Rates) == 0 }), nil
}

// plan converts a plan, and reports whether it covers machines of the region and has an end in the future. Prices are in
// USD, so those in other currencies do not count.
func (r *Reader) plan(x *types.SavingsPlan) (Plan, bool) {
	usd, err := strconv.ParseFloat(aws.ToString(x.Commitment), 64)
	end, invalid := time.Parse(time.RFC3339, aws.ToString(x.End))
	p := Plan{ID: aws.ToString(x.SavingsPlanId), Family: aws.ToString(x.Ec2InstanceFamily), USD: usd, End: end,
		Years: int(time.Duration(x.TermDurationInSeconds) * time.Second / year), Payment: string(x.PaymentOption), Rates: map[string]float64{}}
	ofType := p.Family == ""
	if x.SavingsPlanType == types.SavingsPlanTypeEc2Instance {
		ofType = p.Family != "" && aws.ToString(x.Region) == r.Region
	}
	return p, ofType && err == nil && invalid == nil && end.After(r.Now()) && x.Currency == types.CurrencyCodeUsd &&
		usd > 0 && usd <= mostCommitment && p.ID != ""
}

// rates reads the rates of a plan. Of several for one type, as that of a capacity reservation without an instance, the
// highest counts.
func (r *Reader) rates(ctx context.Context, calls *call.Caller, p *Plan) error {
	asked := r.rateFilters()
	var filters []types.SavingsPlanRateFilter
	for name, value := range asked {
		filters = append(filters, types.SavingsPlanRateFilter{Name: name, Values: []string{value}})
	}
	sieve := calls.Sieve(serviceOfPlans, "DescribeSavingsPlanRates")
	defer sieve.Close()
	pages := &pager[*savingsplans.DescribeSavingsPlanRatesOutput]{next: func(ctx context.Context, token *string) (
		*savingsplans.DescribeSavingsPlanRatesOutput, *string, error) {
		out, err := r.Plans.DescribeSavingsPlanRates(ctx, &savingsplans.DescribeSavingsPlanRatesInput{NextToken: token,
			MaxResults: aws.Int32(planPage), SavingsPlanId: &p.ID, Filters: filters})
		if err != nil {
			return nil, nil, err
		}
		return out, out.NextToken, nil
	}}
	for page, err := range call.Pages(ctx, calls, serviceOfPlans, "DescribeSavingsPlanRates", pages) {
		if err != nil {
			return fmt.Errorf("reading the rates of Savings Plan %s: %w", p.ID, err)
		}
		for i := range page.SearchResults {
			x := &page.SearchResults[i]
			is := map[types.SavingsPlanRateFilterName]string{types.SavingsPlanRateFilterNameProductType: string(x.ProductType)}
			for _, property := range x.Properties {
				is[types.SavingsPlanRateFilterName(property.Name)] = aws.ToString(property.Value)
			}
			fits := true
			for name, value := range asked {
				fits = fits && is[name] == value
			}
			usd, err := strconv.ParseFloat(aws.ToString(x.Rate), 64)
			name := is[types.SavingsPlanRateFilterNameInstanceType]
			if sieve.Keep(fits, name) && err == nil && usd > 0 && usd <= mostRate && name != "" &&
				x.Currency == types.CurrencyCodeUsd && x.Unit == types.SavingsPlanRateUnitHours {
				p.Rates[name] = max(p.Rates[name], usd)
			}
		}
	}
	return nil
}

// pager pages a call for which the SDK has no paginator.
type pager[Out any] struct {
	next  func(ctx context.Context, token *string) (Out, *string, error)
	token *string
	begun bool
}

// HasMorePages implements call.Paginator.
func (p *pager[Out]) HasMorePages() bool { return !p.begun || aws.ToString(p.token) != "" }

// NextPage implements call.Paginator.
func (p *pager[Out]) NextPage(ctx context.Context, _ ...func(*savingsplans.Options)) (out Out, err error) {
	out, p.token, err = p.next(ctx, p.token)
	p.begun = true
	return out, err
}
