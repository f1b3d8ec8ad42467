// Services with franz-go: BOOTSTRAP TOPIC SECONDS; the pace is that of tests/broker/advise/well_behaved.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func client(name string, more ...kgo.Opt) *kgo.Client {
	common := []kgo.Opt{kgo.SeedBrokers(strings.Split(os.Args[1], ",")...), kgo.ClientID(name), kgo.AllowAutoTopicCreation()}
	made, err := kgo.NewClient(append(common, more...)...)
	check(err)
	return made
}

func main() {
	topic := os.Args[2]
	seconds, err := strconv.ParseFloat(os.Args[3], 64)
	check(err)
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for time.Until(end) > time.Second {
			consume(topic, end)
		}
	}()
	produce(topic, end)
	<-done
}

func produce(topic string, end time.Time) {
	producer := client("franz-go-producer", kgo.ProducerLinger(100*time.Millisecond),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	defer producer.Close()
	nextBurst := time.Now().Add(30 * time.Second)
	for number := 0; time.Now().Before(end); {
		count := 10
		if time.Now().After(nextBurst) {
			count, nextBurst = 1000, nextBurst.Add(30*time.Second)
		}
		for range count {
			value := fmt.Sprintf(`{"order": %d, "customer": %d, "state": "accepted", "items": 3}`, number, number*7919%5003)
			record := &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "order-%d", number), Value: []byte(value)}
			producer.Produce(context.Background(), record, func(_ *kgo.Record, err error) { check(err) })
			number++
		}
		time.Sleep(500 * time.Millisecond)
	}
	check(producer.Flush(context.Background()))
}

func consume(topic string, end time.Time) {
	if deployment := time.Now().Add(600 * time.Second); deployment.Before(end) {
		end = deployment
	}
	consumer := client("franz-go-consumer", kgo.ConsumerGroup(topic+".billing"), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer consumer.Close()
	until, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	for until.Err() == nil {
		consumer.PollFetches(until)
	}
	check(consumer.CommitUncommittedOffsets(context.Background()))
}
