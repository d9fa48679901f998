"""Queue names, and an app set up for either broker."""

from celery import Celery

from runner import queues


def test_each_device_has_its_own_queue() -> None:
    assert queues.gpu_queue("cpu") == "gpu-cpu"
    assert queues.gpu_queue("h200") != queues.gpu_queue("b200")


def test_a_task_goes_to_the_queue_of_its_room() -> None:
    assert queues.queue_of(queues.RUN_ATTEMPT) == queues.AGENT
    assert queues.queue_of(queues.CHECK_ENDPOINT) == queues.AGENT
    for task in (queues.RECORD_EVENT, queues.RECORD_REPORT, queues.RECORD_PREFLIGHT, queues.SWEEP):
        assert queues.queue_of(task) == queues.WEB


def test_an_app_takes_json_alone_and_acknowledges_late() -> None:
    app = queues.configure(Celery(set_as_current=False), broker_url="redis://h/0", folder=None)
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_acks_late is True
    assert app.conf.worker_prefetch_multiplier == 1
    assert app.conf.result_backend == "redis://h/0"
    # An attempt of 40 minutes and its gradings must fit, or Redis hands it to a second worker.
    assert app.conf.broker_transport_options["visibility_timeout"] >= 2 * 3_600


def test_the_filesystem_broker_keeps_everything_below_its_folder() -> None:
    app = queues.configure(Celery(set_as_current=False), broker_url="filesystem://", folder="/f")
    options = app.conf.broker_transport_options
    assert options["data_folder_in"] == options["data_folder_out"] == "/f/messages"
    assert app.conf.result_backend == "file:///f/results"
