// Services with sarama: BOOTSTRAP TOPIC SECONDS; the pace is that of tests/broker/advise/well_behaved.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func config(name string) *sarama.Config {
	made := sarama.NewConfig()
	made.ClientID = name
	made.Version = sarama.V4_0_0_0
	made.Producer.Idempotent = true
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Net.MaxOpenRequests = 1
	made.Producer.Compression = sarama.CompressionZSTD
	made.Producer.Flush.Frequency = 100 * time.Millisecond
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.Offsets.AutoCommit.Interval = 5 * time.Second
	return made
}

type reader struct{}

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
	}
	return nil
}

func main() {
	brokers, topic := strings.Split(os.Args[1], ","), os.Args[2]
	seconds, err := strconv.ParseFloat(os.Args[3], 64)
	check(err)
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for time.Until(end) > time.Second {
			consume(brokers, topic, end)
		}
	}()
	produce(brokers, topic, end)
	<-done
}

func produce(brokers []string, topic string, end time.Time) {
	producer, err := sarama.NewAsyncProducer(brokers, config("sarama-producer"))
	check(err)
	go func() {
		for failed := range producer.Errors() {
			log.Print(failed)
		}
	}()
	nextBurst := time.Now().Add(30 * time.Second)
	for number := 0; time.Now().Before(end); {
		count := 10
		if time.Now().After(nextBurst) {
			count, nextBurst = 1000, nextBurst.Add(30*time.Second)
		}
		for range count {
			value := fmt.Sprintf(`{"order": %d, "customer": %d, "state": "accepted", "items": 3}`, number, number*7919%5003)
			producer.Input() <- &sarama.ProducerMessage{
				Topic: topic, Key: sarama.StringEncoder(fmt.Sprintf("order-%d", number)), Value: sarama.StringEncoder(value),
			}
			number++
		}
		time.Sleep(500 * time.Millisecond)
	}
	producer.AsyncClose()
	for range producer.Successes() {
	}
}

func consume(brokers []string, topic string, end time.Time) {
	if deployment := time.Now().Add(600 * time.Second); deployment.Before(end) {
		end = deployment
	}
	group, err := sarama.NewConsumerGroup(brokers, topic+".billing", config("sarama-consumer"))
	check(err)
	defer func() { check(group.Close()) }()
	until, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	for until.Err() == nil {
		if err := group.Consume(until, []string{topic}, reader{}); err != nil {
			log.Print(err)
			time.Sleep(time.Second)
		}
	}
}
